//! The outcome of a test and its history.

use maud::{Markup, html};

use super::view::View;
use crate::{
    api::address,
    chart::{Quartiles, flaky, glyph},
    page::{
        classification,
        paged::Paged,
        part::{facts, result_badge, subject},
        review::reviewer,
        row::identifier,
    },
    record::{Outcome, Report, TestCaseRun},
    text::{duration, long_time, plain},
};

/// Number of runs in the history.
const SHOWN: usize = 10;

/// Returns the address of the list that a test belongs to.
pub(super) fn list(report: &Report, view: &View) -> String {
    let query = Paged::parse(view.from.as_deref().unwrap_or_default());
    let list = address(&format!("/executions/{}", report.execution_id), &query);
    format!("{list}#r-{}", report.id)
}

pub(super) fn head(report: &Report, runs: &[TestCaseRun], view: &View) -> Markup {
    html! {
        div.head {
            h1 { bdi { (plain(&report.test_case_name)) } }
            (badges(report))
            (walk(report, view))
        }
        (identifier(&report.test_case_identifier, &report.test_case_name))
        (facts_of(report, runs))
        (classification::shown(&report.classification, &format!("/executions/{}", report.execution_id)))
        (history(report, runs))
        (review(report))
    }
}

fn badges(report: &Report) -> Markup {
    let change = match report.change.as_str() {
        "New" => Some("new"),
        "Still" => Some("still failing"),
        "CauseChanged" => Some("other cause"),
        "Fixed" => Some("fixed"),
        _ => None,
    };
    html! {
        (result_badge(report.result, report.result.label()))
        @if let Some(change) = change { span class="badge none" { (change) } }
        @if report.is_flaky || report.change == "Flaky" { span.badge.flaky { "flaky" } }
        @if report.is_muted { span.badge.none { "muted" } }
        @if !report.change_reason.is_empty() { span.small.reason { (report.change_reason) } }
    }
}

/// Links to the previous and the next test of the list.
fn walk(report: &Report, view: &View) -> Markup {
    let query = View { from: view.from.clone(), ..View::default() };
    let to = |way: &str| address(&format!("/reports/{}/{way}", report.id), &query);
    html! {
        nav.walk aria-label="Tests of the list" {
            a.button rel="prev" href=(to("previous")) { "‹ Previous" }
            a.button rel="up" href=(list(report, view)) { "List" }
            a.button rel="next" href=(to("next")) { "Next ›" }
        }
    }
}

fn facts_of(report: &Report, runs: &[TestCaseRun]) -> Markup {
    let seconds = report.total_duration_in_sec;
    let passed = runs.iter().filter(|run| run.result == Outcome::Passed && run.id != report.id);
    let quartiles = Quartiles::of(passed.map(|run| run.total_duration_in_sec).collect());
    let subject = subject(report.subject_name.as_deref(), report.subject_identifier.as_deref());
    html! {
        p.facts {
            span.fact { (long_time(report.request_time)) }
            span.fact {
                (duration(seconds))
                @if let Some(quartiles) = quartiles {
                    span.dim {
                        ", median " (duration(quartiles.median)) " (" (signed(quartiles.deviation(seconds))) ")"
                    }
                }
            }
            (facts([report.environment_name.as_deref(), subject.as_deref()]))
            span.fact { a href=(format!("/cases/{}", report.test_case_id)) { "All runs of this test" } }
        }
    }
}

/// Returns percents with their sign.
fn signed(percent: f64) -> String {
    let sign = if percent < -0.5 { '\u{2212}' } else { '+' };
    format!("{sign}{:.0} %", percent.abs())
}

/// The last runs as links, the latest last.
fn history(report: &Report, runs: &[TestCaseRun]) -> Markup {
    html! {
        @if runs.len() > 1 {
            nav.runs aria-label="Latest runs of this test" {
                span.dim { "Latest runs" }
                ol { @for run in runs.iter().take(SHOWN).rev() {
                    li {
                        a href=(format!("/reports/{}", run.id)) title=(run.request_time.format("%-d %b %Y, %H:%M UTC"))
                            aria-current=[(run.id == report.id).then_some("page")]
                        {
                            @if run.is_flaky && run.result == Outcome::Passed { (flaky()) }
                            @else { (glyph(run.result)) }
                        }
                    }
                } }
            }
        }
    }
}

/// The judgement of a reviewer.
fn review(report: &Report) -> Markup {
    let comment = report.comment.as_deref().unwrap_or_default();
    let is_judged = matches!(report.status.as_str(), "Accepted" | "Rejected" | "Investigation");
    html! {
        @if is_judged || !comment.is_empty() || !report.ticket.is_empty() {
            p.review {
                @if is_judged { b { (report.status) } (reviewer(&report.review)) " " }
                @if !report.ticket.is_empty() { span.badge.none { bdi { (plain(&report.ticket)) } } " " }
                bdi { (plain(comment)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deviation_has_a_sign() {
        for (percent, expected) in [(1.6, "+2 %"), (0.0, "+0 %"), (-0.4, "+0 %"), (-12.0, "−12 %")]
        {
            assert_eq!(signed(percent), expected);
        }
    }
}
