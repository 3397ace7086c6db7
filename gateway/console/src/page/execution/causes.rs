//! Failures of an execution by their causes.

use maud::{Markup, html};

use super::{
    filter::{Filter, Tab},
    header::search,
    listing::Listing,
    path::Place,
};
use crate::{
    api::{Api, List, address},
    failure::Failure,
    page::{
        paged::Paged,
        row::{Rows, row},
    },
    record::Cause,
    text::{ansi, counted, number, short_time},
};

/// Number of causes on a page.
const CAUSES: u32 = 25;

/// The causes of a page.
pub(super) struct Causes(List<Cause>);

pub(super) async fn read(api: &Api, listing: Listing<'_>) -> Result<Causes, Failure> {
    let Listing { place, tab, query } = listing;
    let query = Paged { filter: query.filter.of_interface(tab), cursor: query.cursor.clone() };
    let causes = api.list(&format!("{}/failures", place.api), &query.listed(CAUSES)).await?;
    Ok(Causes(causes))
}

impl Causes {
    pub(super) fn section(&self, listing: Listing<'_>, rows: Rows<'_>) -> Markup {
        let Listing { place, tab, query } = listing;
        let (page, filter) = (&place.page, &query.filter);
        html! {
            div.tools {
                p.hint {
                    @if tab == Tab::Muted { "Failures with a known cause do not count as new." }
                    @else { "Failures with the same cause are together, the most frequent first." }
                }
                (search(page, tab, "Search messages", filter))
            }
            @if self.0.items.is_empty() { (query.nothing(nothing(tab, filter))) }
            @for cause in &self.0.items { (group(place, cause, tab, rows)) }
            (query.pager(page, self.0.next.as_deref()))
        }
    }
}

/// Returns a cause with its first tests.
fn group(place: &Place, cause: &Cause, tab: Tab, rows: Rows<'_>) -> Markup {
    let all = Filter { fingerprint: Some(cause.fingerprint.clone()), ..tab.filter() };
    let shown = i64::try_from(cause.reports.len()).unwrap_or(i64::MAX);
    html! {
        section.group {
            header {
                (rows.cause(cause))
                @if cause.headline.is_empty() { p.headline.dim { "Without a message" } }
                @else { pre.headline { (ansi(&cause.headline)) } }
                p.facts {
                    span.fact { a href=(address(&place.page, &all)) { b { (counted(cause.count, "test")) } } }
                    @if cause.variants > 1 {
                        span.fact { (number(cause.variants)) " different messages" }
                    }
                    (seen(cause, place))
                }
            }
            ul.rows { @for report in &cause.reports { (row(report, rows)) } }
            @if cause.count > shown {
                p.more { a href=(address(&place.page, &all)) { "Show all tests" } }
            }
        }
    }
}

/// Returns since when a cause is known, which readers of a share link do not see.
fn seen(cause: &Cause, place: &Place) -> Markup {
    html! {
        @if let (Some(id), Some(first_seen)) = (place.id, cause.first_seen) {
            span.fact {
                @if cause.first_execution_id == id.to_string() { "first seen here" }
                @else {
                    "since " a href=(format!("/executions/{}", cause.first_execution_id)) {
                        (short_time(first_seen))
                    }
                }
            }
        }
    }
}

fn nothing(tab: Tab, filter: &Filter) -> &'static str {
    match tab {
        _ if filter.q.is_some() => "No failure has this text in its message.",
        Tab::Muted => "No failure is muted.",
        Tab::New => "No new failures: whatever fails also failed before.",
        _ => "Nothing that failed before fails again.",
    }
}
