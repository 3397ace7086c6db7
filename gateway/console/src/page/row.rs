//! A test as a row of a list of results.

use maud::{Markup, html};

use super::{
    part::{OF_TEST, ticket},
    review::{Entry, FORM, reviewer},
};
use crate::{
    api::address,
    chart::{flaky, glyph, strip},
    record::{Cause, Outcome, Project, ReportEntry, ResultChange},
    text::{clean, counted, plain, short_time, taken},
};

/// Maximum number of results before that of an entry, in the interface.
const HISTORY: usize = 10;

/// The rows of a list.
#[derive(Clone, Copy, Default)]
pub(super) struct Rows<'a> {
    /// Path before those of the pages of tests.
    pub(super) below: &'a str,
    /// Query of the list, which the page of a test leads back to.
    pub(super) from: &'a str,
    /// The judgement of the selected rows, if they can be selected.
    pub(super) judged: Option<&'a Entry>,
    /// Whether rows show the message of the failure.
    pub(super) with_headline: bool,
    /// The project, whose tickets are links. None for readers of a share link, who see no tickets.
    pub(super) project: Option<&'a Project>,
}

impl Rows<'_> {
    /// Returns the address of the page of a test.
    pub(super) fn address(&self, id: &str) -> String {
        address(&format!("{}/reports/{id}", self.below), &[("from", self.from)])
    }

    fn has(&self, key: &str) -> bool {
        self.judged.is_some_and(|entry| entry.selected.iter().any(|one| one == key))
    }

    /// A box that selects all tests of a cause, of which the page may show some, and the version of its judgements that
    /// the user has seen.
    pub(super) fn cause(&self, cause: &Cause) -> Markup {
        let Cause { fingerprint, count, .. } = cause;
        html! {
            @if self.judged.is_some() {
                input.all type="checkbox" name="cause" form=(FORM) value=(fingerprint)
                    checked[self.has(fingerprint)] data-count=(count)
                    aria-label=(format!("Select {} with this cause", counted(*count, "test")));
                (self.seen(cause))
            }
        }
    }

    /// The version of the judgements of a cause that the user has seen.
    pub(super) fn seen(&self, cause: &Cause) -> Markup {
        html! {
            @if let Some(entry) = self.judged {
                input type="hidden" name="seenCause" form=(FORM) value=(entry.seen_cause(cause));
            }
        }
    }

    /// A field that leaves the judged tests of selected causes out of a judgement, for lists that leave them out.
    pub(super) fn unreviewed(&self) -> Markup {
        html! { @if self.judged.is_some() { input type="hidden" name="unreviewed" form=(FORM) value="true"; } }
    }

    /// A box with a label that selects all tests of the cause that a list is about. The page may show a part of
    /// them.
    pub(super) fn whole_cause(&self, fingerprint: &str, count: Option<i64>, label: &str) -> Markup {
        html! {
            @if self.judged.is_some() {
                label.check {
                    input.all type="checkbox" name="cause" form=(FORM) value=(fingerprint)
                        checked[self.has(fingerprint)] data-count=[count];
                    " " (label)
                }
            }
        }
    }

    /// A box that selects a test, and the version that the user has seen.
    pub(super) fn selection(&self, report: &ReportEntry) -> Markup {
        let ReportEntry { id, test_case_name, data_version, .. } = report;
        html! {
            @if let Some(entry) = self.judged {
                input type="checkbox" name="report" form=(FORM) value=(id)
                    checked[self.has(id)]
                    aria-label=(format!("Select {}", clean(test_case_name)));
                input type="hidden" name="seen" form=(FORM) value=(entry.seen(id, data_version));
            }
        }
    }
}

/// A row of a list.
pub(super) fn row(report: &ReportEntry, rows: Rows<'_>) -> Markup {
    let is_flaky = report.is_flaky && report.result == Outcome::Passed;
    let headline = report.headline.lines().next().unwrap_or_default();
    let is_judged = report.status.is_judged();
    html! {
        li.row.test.muted[report.is_muted] id=(format!("r-{}", report.id)) data-judged[is_judged] {
            span.mark {
                (rows.selection(report))
                @if is_flaky { (flaky()) } @else { (glyph(report.result)) }
            }
            span.what {
                a href=(rows.address(&report.id)) {
                    bdi { (plain(&report.test_case_name)) }
                }
                (place(&report.test_case_identifier, &report.test_case_name))
                @if rows.with_headline && !headline.is_empty() {
                    code.headline title=(clean(headline)) { (plain(headline)) }
                }
            }
            (marks(report, rows.project))
            span.history { (strip(&history(report))) }
            span.time title=(OF_TEST) { (taken(report.result, report.duration_in_sec)) }
        }
    }
}

/// The place of a test case: its identifier without its name, with which many end.
pub(super) fn place(identifier: &str, name: &str) -> Markup {
    let place = identifier.strip_suffix(name).unwrap_or(identifier);
    let place = place.trim_end_matches(|c: char| !c.is_alphanumeric() && !")]}".contains(c));
    html! { @if !place.is_empty() { span.id { bdi { (plain(place)) } } } }
}

/// The identifier of a test case, unless it is its name.
pub(super) fn identifier(identifier: &str, name: &str) -> Markup {
    html! {
        @if identifier != name && !identifier.is_empty() {
            span.id { bdi { (plain(identifier)) } }
        }
    }
}

/// Returns the results before this one, and this one.
fn history(report: &ReportEntry) -> Vec<Outcome> {
    report.history.chars().map(Outcome::of_letter).chain([report.result]).collect()
}

fn marks(report: &ReportEntry, project: Option<&Project>) -> Markup {
    html! {
        span.marks {
            @if report.is_muted { span.badge.none { "muted" } }
            @if let Some(project) = project { (ticket(&report.ticket, project)) }
            @if report.status.is_judged() {
                span.badge.none { (report.status) }
                span.small { (reviewer(&report.review)) }
            }
            @if report.attempts > 1 { span.small { (report.attempts) " attempts" } }
            @if !report.change_reason.is_empty() { span.small.reason { (plain(&report.change_reason)) } }
            @if report.change == ResultChange::Still { (since(report)) }
        }
    }
}

/// Says since when a test has been failing. The interface knows the latest runs: a test that passed in none of them may
/// have failed before.
fn since(report: &ReportEntry) -> Markup {
    let before = || report.history.chars().map(Outcome::of_letter);
    let is_cut = before().count() >= HISTORY && before().all(|one| one != Outcome::Passed);
    let failures = 1 + before().filter(|one| one.is_failure()).count();
    html! {
        @if is_cut {
            span.small { "for at least " (counted(i64::try_from(failures).unwrap_or(i64::MAX), "run")) }
        } @else if let Some(since) = report.failing_since {
            span.small { "since " (short_time(since)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_failed_in_all_runs_that_are_known_has_failed_for_at_least_as_many() {
        let shown = |history: &str| {
            let report: ReportEntry = serde_json::from_value(serde_json::json!({
                "Id": "1", "TestCaseIdentifier": "pays", "TestCaseName": "pays", "Result": "Failed",
                "Change": "Still", "Attempts": 1, "DurationInSec": 1, "Headline": "", "History": history,
                "FailingSince": "2026-03-01T00:00:00Z", "IsMuted": false, "IsFlaky": false,
                "ReviewedBy": null, "ReviewTime": null,
            }))
            .unwrap();
            marks(&report, None).into_string()
        };
        for (history, runs) in [("FFFFFFFFFF", 11), ("FF-FFEFFCF", 9)] {
            let html = shown(history);
            assert!(html.contains(&format!(">for at least {runs} runs<")), "{history}: {html}");
            assert!(!html.contains("since"), "{history}: {html}");
        }
        for history in ["PFFFFFFFFF", "FFFFFFFFF", "F"] {
            let html = shown(history);
            assert!(html.contains(">since <time") && !html.contains("for at"), "{history}: {html}");
        }
    }

    #[test]
    fn the_place_of_a_test_is_not_its_name() {
        for (identifier, name, expected) in [
            ("src/pay.spec.ts.pays by card", "pays by card", "src/pay.spec.ts"),
            ("shop::checkout::pays", "pays", "shop::checkout"),
            ("suite (chrome) > pays", "pays", "suite (chrome)"),
            ("CASE-17", "pays", "CASE-17"),
        ] {
            let place = place(identifier, name).into_string();
            let expected = html! { span.id { bdi { (expected) } } }.into_string();
            assert_eq!(place, expected);
        }
        assert_eq!(place("pays", "pays").into_string(), "");
    }
}
