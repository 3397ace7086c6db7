//! Failures of an execution by their causes.

use std::collections::HashMap;

use futures::try_join;
use maud::{Markup, html};
use serde::Serialize;
use uuid::Uuid;

use super::{Filter, Tab, header::search, path};
use crate::{
    api::{Api, Cause, List, ReportEntry, address},
    failure::Failure,
    page::{
        part::pager,
        row::{Rows, identifier, row},
    },
    text::{ansi, counted, number, plain, short_time},
};

/// Number of causes on a page.
const CAUSES: u32 = 25;

/// Number of test reports that are read to show histories. The causes name up to five for each of
/// them.
const REPORTS: u32 = 200;

/// The causes of a page, with what is known of their test reports.
pub(super) struct Causes {
    causes: List<Cause>,
    reports: HashMap<String, ReportEntry>,
}

#[derive(Serialize)]
struct Query<'a> {
    limit: u32,
    change: Option<&'a str>,
    q: Option<&'a str>,
    cursor: Option<&'a str>,
}

async fn list(api: &Api, id: Uuid, tab: Tab, filter: &Filter) -> Result<List<Cause>, Failure> {
    let query = Query {
        limit: CAUSES,
        change: tab.change(),
        q: filter.q.as_deref(),
        cursor: filter.cursor.as_deref(),
    };
    api.list(&format!("{}/failures", path(id)), &query).await
}

pub(super) async fn read(
    api: &Api,
    id: Uuid,
    tab: Tab,
    filter: &Filter,
) -> Result<Causes, Failure> {
    let query = Query { limit: REPORTS, change: tab.change(), q: None, cursor: None };
    let reports = format!("{}/reports", path(id));
    let (causes, reports) =
        try_join!(list(api, id, tab, filter), api.list::<ReportEntry>(&reports, &query))?;
    let reports = reports.items.into_iter().map(|report| (report.id.clone(), report)).collect();
    Ok(Causes { causes, reports })
}

/// Returns the ids of the test reports in the order of the page.
pub(super) async fn order(
    api: &Api,
    id: Uuid,
    tab: Tab,
    filter: &Filter,
) -> Result<(Vec<String>, Option<Filter>), Failure> {
    let causes = list(api, id, tab, filter).await?;
    let reports = causes.items.into_iter().flat_map(|cause| cause.reports);
    let ids = reports.map(|report| report.id).collect();
    Ok((ids, causes.next.map(|cursor| filter.at(Some(cursor)))))
}

impl Causes {
    pub(super) fn section(&self, id: Uuid, tab: Tab, filter: &Filter, selectable: bool) -> Markup {
        let page = format!("/executions/{id}");
        let from = filter.query(tab);
        let rows = Rows { from: &from, selectable, with_headline: false };
        let next = self.causes.next.clone().map(|cursor| filter.at(Some(cursor)));
        let first = filter.cursor.is_some().then(|| filter.at(None));
        html! {
            div.tools {
                p.hint { "Failures with the same cause are together, the most frequent first." }
                (search(&page, tab, "Search messages", filter.q.as_deref()))
            }
            @if self.causes.items.is_empty() { (nothing(tab, filter)) }
            @for cause in &self.causes.items { (self.group(&page, cause, tab, rows, id)) }
            (pager(&page, first.as_ref(), next.as_ref()))
        }
    }

    fn group(&self, page: &str, cause: &Cause, tab: Tab, rows: Rows<'_>, id: Uuid) -> Markup {
        let all = Filter { fingerprint: Some(cause.fingerprint.clone()), ..tab.filter() };
        let shown = i64::try_from(cause.reports.len()).unwrap_or(i64::MAX);
        html! {
            section.group {
                header {
                    @if rows.selectable {
                        input.all type="checkbox" hidden aria-label="Select the tests of this cause";
                    }
                    @if cause.headline.is_empty() { p.headline.dim { "Without a message" } }
                    @else { pre.headline { (ansi(&cause.headline)) } }
                    p.facts {
                        span.fact { b { (counted(cause.count, "test")) } }
                        @if cause.variants > 1 {
                            span.fact { (number(cause.variants)) " different messages" }
                        }
                        span.fact { (seen(cause, id)) }
                    }
                }
                ul.rows { @for report in &cause.reports {
                    @match self.reports.get(&report.id) {
                        Some(report) => (row(report, rows)),
                        None => li.row.test id=(format!("r-{}", report.id)) {
                            span.mark { (rows.selection(&report.id, &report.test_case_name)) }
                            span.what {
                                a href=(rows.address(&report.id)) {
                                    bdi { (plain(&report.test_case_name)) }
                                }
                                (identifier(&report.test_case_identifier, &report.test_case_name))
                            }
                        }
                    }
                } }
                @if cause.count > shown {
                    p.more { a href=(address(page, &all)) { "Show all " (counted(cause.count, "test")) } }
                }
            }
        }
    }
}

/// Returns since when a cause is known.
fn seen(cause: &Cause, id: Uuid) -> Markup {
    html! {
        @if cause.first_execution_id == id.to_string() { "first seen here" }
        @else {
            "since " a href=(format!("/executions/{}", cause.first_execution_id)) {
                (short_time(cause.first_seen))
            }
        }
    }
}

fn nothing(tab: Tab, filter: &Filter) -> Markup {
    html! {
        p.empty {
            @if filter.q.is_some() { "No failure has this text in its message." }
            @else if tab == Tab::New { "No new failures: whatever fails also failed before." }
            @else { "Nothing that failed before fails again." }
        }
    }
}
