//! Results of an execution as a plain list.

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
        part::choice,
        row::{Rows, row},
    },
    record::{Cause, Outcome, ReportEntry, ReportStatus},
    text::{ansi, clean},
};

/// Number of results on a page.
const RESULTS: u32 = 50;

/// The results of a page.
pub(super) struct Results {
    reports: List<ReportEntry>,
    /// The cause that the list is about, of whose tests the page shows a part.
    whole: Option<Cause>,
}

/// Reads the results of a page, and what is needed to judge all of a list.
pub(super) async fn read(
    api: &Api,
    listing: Listing<'_>,
    is_judged: bool,
) -> Result<Results, Failure> {
    let Listing { place, tab, query, .. } = listing;
    let page = Paged { filter: query.filter.of_interface(tab), cursor: query.cursor.clone() };
    let reports: List<ReportEntry> =
        api.list(&format!("{}/reports", place.api), &page.listed(RESULTS)).await?;
    let is_part = query.cursor.is_some() || reports.next.is_some();
    let whole = if is_part && is_judged { whole(api, listing).await? } else { None };
    Ok(Results { reports, whole })
}

/// Returns the cause that a list is about.
async fn whole(api: &Api, listing: Listing<'_>) -> Result<Option<Cause>, Failure> {
    let Listing { place, tab, query, .. } = listing;
    if query.filter.fingerprint.is_none() {
        return Ok(None);
    }
    let query = Paged { filter: query.filter.of_interface(tab), cursor: None };
    let causes = api.list::<Cause>(&format!("{}/failures", place.api), &query.listed(1)).await?;
    Ok(causes.items.into_iter().next())
}

impl Results {
    pub(super) fn section(&self, listing: Listing<'_>, rows: Rows<'_>) -> Markup {
        let Self { reports, whole } = self;
        let Listing { place, tab, query, is_running, .. } = listing;
        let (page, filter) = (&place.page, &query.filter);
        let rows = Rows { with_headline: filter.fingerprint.is_none(), ..rows };
        let is_part = query.cursor.is_some() || reports.next.is_some();
        let is_unreviewed = filter.unreviewed.is_some();
        let of_cause = |cause: &Cause| if is_unreviewed { cause.unreviewed } else { cause.count };
        let count = if is_part {
            whole.as_ref().map(of_cause)
        } else {
            i64::try_from(reports.items.len()).ok()
        };
        html! {
            @if let Some(fingerprint) = &filter.fingerprint {
                (headline(page, tab, &reports.items))
                (rows.whole_cause(fingerprint, count, "All tests of this list"))
                @if let Some(cause) = whole { (rows.seen(cause)) }
                @if is_unreviewed { (rows.unreviewed()) }
            }
            @else { (tools(place, tab, filter)) }
            @if reports.items.is_empty() { (query.nothing(nothing(tab, filter, is_running))) }
            ul.rows { @for report in &reports.items { (row(report, rows)) } }
            (query.pager(page, reports.next.as_deref()))
        }
    }
}

/// The message of the cause that the list is about.
fn headline(page: &str, tab: Tab, reports: &[ReportEntry]) -> Markup {
    let headline = reports.first().map(|report| report.headline.as_str()).unwrap_or_default();
    html! {
        div.tools {
            p { a href=(address(page, &tab.filter())) { "« All causes" } }
        }
        @if !headline.is_empty() { pre.headline.alone { (ansi(headline)) } }
    }
}

fn tools(place: &Place, tab: Tab, filter: &Filter) -> Markup {
    let page = &place.page;
    let results = Outcome::EACH.map(|result| (result.name(), result.label()));
    let statuses = [
        ReportStatus::InReview,
        ReportStatus::Investigation,
        ReportStatus::Accepted,
        ReportStatus::Rejected,
    ];
    let statuses = statuses.map(|status| (status.name(), status.label()));
    html! {
        @if tab == Tab::All {
            form.filters role="search" action=(page) {
                input type="hidden" name="view" value="all";
                label.field.wide {
                    span { "Test" }
                    input type="search" name="q" value=[filter.q.as_deref().map(clean)];
                }
                (choice("result", "Result", &results, filter.result.as_deref()))
                @if place.id.is_some() {
                    (choice("status", "Review", &statuses, filter.status.as_deref()))
                    (filter.place.fields())
                    label.check {
                        input type="checkbox" name="unreviewed" value="true"
                            checked[filter.unreviewed.is_some()];
                        " To review"
                    }
                }
                button { "Filter" }
                @if filter.is_narrow() {
                    a.button.quiet href=(address(page, &tab.filter())) { "Clear" }
                }
            }
        } @else {
            div.tools {
                p.hint { (meaning(tab)) }
                (search(page, tab, "Search tests", filter))
            }
        }
    }
}

fn meaning(tab: Tab) -> &'static str {
    match tab {
        Tab::Flaky => {
            "Passed after an attempt that did not, or fail and are flaky: they do not count as new."
        }
        Tab::Fixed => "Passed, and failed before.",
        Tab::New => "Fail, are not flaky, and passed before or never ran.",
        Tab::CauseChanged => "Fail as before, for a cause that they did not have.",
        Tab::Still => "Fail, and failed before.",
        Tab::Muted => "Fail for a known cause: they do not count as new.",
        Tab::All => "",
    }
}

fn nothing(tab: Tab, filter: &Filter, is_running: bool) -> &'static str {
    match tab {
        _ if filter.is_narrow() => "No test matches these filters.",
        _ if filter.fingerprint.is_some() => "No failure of this part with this cause is stored.",
        _ if is_running => "No results yet. They appear as they arrive.",
        Tab::Flaky => "No flaky tests.",
        Tab::Fixed => "Nothing is fixed that failed before.",
        _ => "No results.",
    }
}
