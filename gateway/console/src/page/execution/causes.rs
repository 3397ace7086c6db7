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
        part::EXPIRED,
        row::{Rows, row},
    },
    record::{Cause, Statistic},
    text::{ansi, counted, number, short_time},
};

/// Number of causes on a page.
const CAUSES: u32 = 25;

/// The causes of a page.
pub(super) struct Causes(List<Cause>);

pub(super) async fn read(api: &Api, listing: Listing<'_>) -> Result<Causes, Failure> {
    let Listing { place, tab, query, .. } = listing;
    let query = Paged { filter: query.filter.of_interface(tab), cursor: query.cursor.clone() };
    let causes = api.list(&format!("{}/failures", place.api), &query.listed(CAUSES)).await?;
    Ok(Causes(causes))
}

impl Causes {
    pub(super) fn section(&self, listing: Listing<'_>, rows: Rows<'_>) -> Markup {
        let Listing { place, tab, query, .. } = listing;
        let (page, filter) = (&place.page, &query.filter);
        html! {
            div.tools {
                p.hint {
                    @if tab == Tab::Muted { "Failures with a known cause do not count as new." }
                    @else { "Failures with the same cause are together, the most frequent first." }
                }
                (search(page, tab, "Search messages", filter))
            }
            @if self.0.items.is_empty() { (query.nothing(nothing(listing))) }
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

/// Says why a part has no cause. Failures that are counted have one as long as their results are stored.
fn nothing(Listing { tab, query, changes, is_running, .. }: Listing<'_>) -> &'static str {
    let filter = &query.filter;
    // The number of a part is not that of an address that selects some of its failures.
    let is_some = filter.unreviewed.is_some() || filter.muted.is_some() && tab != Tab::Muted;
    match tab {
        _ if filter.q.is_some() => "No failure has this text in its message.",
        _ if is_some => "No cause matches these filters.",
        _ if tab.count(&changes, &Statistic::default()) > 0 && !is_running => EXPIRED,
        Tab::Muted => "No failure is muted.",
        Tab::New if changes.muted_new > 0 => "All new failures are muted.",
        Tab::New => "No new failures: each test that fails is flaky, or failed before.",
        Tab::CauseChanged if changes.muted_cause_changed > 0 => {
            "All tests that fail for another cause than before are muted."
        }
        Tab::CauseChanged => "No test fails for another cause than before.",
        _ if changes.muted_still > 0 => "All tests that fail as before are muted.",
        _ => "No test fails as before.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Changes;

    #[test]
    fn a_part_without_causes_denies_no_failure_that_is_counted() {
        let none = Changes::default();
        let expired = Changes { new: 45, still: 2, muted: 1, ..none };
        let muted = Changes { new: 2, muted_new: 2, muted: 2, ..none };
        let place = Place::shared("token");
        for (query, changes, is_running, expected) in [
            ("change=New", expired, false, EXPIRED),
            ("change=Still", expired, false, EXPIRED),
            ("muted=true", expired, false, EXPIRED),
            ("change=New", expired, true, "No new failures"),
            ("change=CauseChanged", expired, false, "No test fails for another cause"),
            ("change=New", muted, false, "All new failures are muted."),
            ("change=New&unreviewed=true", expired, false, "No cause matches"),
            ("change=New&muted=true", expired, false, "No cause matches"),
            ("change=New&q=bank", expired, false, "No failure has this text"),
            ("change=New", none, false, "No new failures"),
            ("muted=true", none, false, "No failure is muted."),
        ] {
            let query_of = Paged::<Filter>::parse(query);
            let tab = query_of.filter.tab(&changes);
            let listing = Listing { place: &place, tab, query: &query_of, changes, is_running };
            let text = nothing(listing);
            assert!(text.starts_with(expected), "{query}: {text}");
        }
    }
}
