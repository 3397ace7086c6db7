//! The outcome of a test and its history.

use maud::{Markup, html};

use super::view::View;
use crate::{
    api::address,
    chart::{Quartiles, flaky, glyph},
    page::{
        classification,
        execution::Filter,
        paged::Paged,
        part::{OF_TEST, facts, result_badge, subject, ticket},
        review::reviewer,
        row::identifier,
    },
    record::{Outcome, Position, Project, Report, ResultChange, TestCaseRun},
    text::{duration, exact_time, long_time, number, plain, taken, tooltip_time},
};

/// Number of runs in the history.
const SHOWN: usize = 10;

/// Returns the list that a test was opened from, or else one that it belongs to.
pub(super) fn list_of(report: &Report, view: &View) -> Paged<Filter> {
    let of_change = || match report.change {
        _ if report.is_muted => "muted=true".to_owned(),
        ResultChange::None | ResultChange::Unknown => "view=all".to_owned(),
        change => format!("change={change}"),
    };
    Paged::parse(&view.from.clone().unwrap_or_else(of_change))
}

/// Returns the address of the list of a test.
pub(super) fn list(report: &Report, list: &Paged<Filter>) -> String {
    let list = address(&format!("/executions/{}", report.execution_id), list);
    format!("{list}#r-{}", report.id)
}

pub(super) fn head(
    report: &Report,
    runs: &[TestCaseRun],
    list: &Paged<Filter>,
    position: &Position,
    undo: &Markup,
    project: &Project,
) -> Markup {
    html! {
        div.head {
            h1 { bdi { (plain(&report.test_case_name)) } }
            (badges(report))
            (walk(report, list, position))
        }
        (identifier(&report.test_case_identifier, &report.test_case_name))
        (facts_of(report, runs))
        (classification::shown(&report.classification, &format!("/executions/{}", report.execution_id)))
        (history(report, runs))
        (review(report, undo, project))
    }
}

fn badges(report: &Report) -> Markup {
    let change = match report.change {
        ResultChange::New => Some("new"),
        ResultChange::Still => Some("still failing"),
        ResultChange::CauseChanged => Some("other cause"),
        ResultChange::Fixed => Some("fixed"),
        _ => None,
    };
    html! {
        (result_badge(report.result, report.result.label()))
        @if let Some(change) = change { span class="badge none" { (change) } }
        @if report.is_flaky || report.change == ResultChange::Flaky { span.badge.flaky { "flaky" } }
        @if report.is_muted { span.badge.none { "muted" } }
        @if !report.change_reason.is_empty() { span.small.reason { (plain(&report.change_reason)) } }
    }
}

/// Links to the previous and the next test of the list, and back to it. The list says when the last test
/// was shown.
fn walk(report: &Report, list: &Paged<Filter>, position: &Position) -> Markup {
    let from = serde_urlencoded::to_string(list).unwrap_or_default();
    let to = |id: &String| address(&format!("/reports/{id}"), &[("from", &from)]);
    let end = || {
        let list = address(&format!("/executions/{}", report.execution_id), list);
        let separator = if list.contains('?') { '&' } else { '?' };
        format!("{list}{separator}last={0}#r-{0}", report.id)
    };
    html! {
        nav.walk aria-label="Tests of the list" {
            @if let Some(at) = position.number {
                span.dim { (number(at)) " of " (number(position.total)) }
            }
            @if let Some(previous) = &position.previous_id {
                a.button rel="prev" href=(to(previous)) { "‹ Previous" }
            }
            a.button rel="up" href=(self::list(report, list)) { "List" }
            a.button rel="next" href=(position.next_id.as_ref().map_or_else(end, to)) { "Next ›" }
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
            span.fact title=(OF_TEST) {
                (taken(report.result, seconds))
                @if let Some(quartiles) = quartiles.filter(|_| report.result.has_run()) {
                    span.dim {
                        ", median " (duration(quartiles.median)) " (" (signed(quartiles.deviation(seconds))) ")"
                    }
                }
            }
            (facts([report.branch.as_deref(), report.environment_name.as_deref(), subject.as_deref()]))
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
                span.dim {
                    "Latest runs"
                    @if let Some(branch) = &report.branch { " on " bdi { (plain(branch)) } }
                }
                ol { @for run in runs.iter().take(SHOWN).rev() {
                    li {
                        a href=(format!("/reports/{}", run.id)) title=(tooltip_time(run.request_time))
                            data-time=(exact_time(run.request_time))
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
fn review(report: &Report, undo: &Markup, project: &Project) -> Markup {
    let comment = report.comment.as_deref().unwrap_or_default();
    let is_judged = report.status.is_judged();
    html! {
        @if is_judged || !comment.is_empty() || !report.ticket.is_empty() {
            p.review {
                @if is_judged { b { (report.status) } (reviewer(&report.review)) " " }
                (ticket(&report.ticket, project)) " "
                bdi { (plain(comment)) }
            }
            (undo)
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
