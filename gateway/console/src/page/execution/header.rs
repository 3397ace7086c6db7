//! The outcome of an execution: facts, bar and numbers.

use maud::{Markup, html};

use super::{
    estimate::time_left,
    export,
    filter::{Filter, Tab},
};
use crate::{
    api::address,
    chart::bar,
    page::paged::Paged,
    page::part::{facts, result_badge, revision, subject, taken_by_tests},
    record::{
        Changes, ExecutionEntry, ExecutionStatus, Outcome, Statistic, Summary, Verdict,
        VerdictState,
    },
    text::{Link, clean, counted, link, long_time, number, plain},
};

/// Returns the title of the page: the numbers first, because tabs of browsers are narrow.
pub(super) fn title(summary: &Summary) -> String {
    let (changes, name) = (summary.changes, &summary.execution.test_set_name);
    match changes.new_failures() {
        0 => format!("{} · {name}", state(summary)),
        new => format!("{} · {name}", counted(new, "new failure")),
    }
}

fn state(summary: &Summary) -> &'static str {
    let ExecutionEntry { status, result, .. } = summary.execution;
    if status == ExecutionStatus::Completed { result.summary() } else { status.name() }
}

/// The header with the links to the parts. While the execution runs, the script replaces it, and it says how much of
/// the usual duration, in seconds, is left.
pub(super) fn header(
    summary: &Summary,
    verdict: Option<&Verdict>,
    tab: Tab,
    query: &Paged<Filter>,
    usual: Option<f64>,
) -> Markup {
    let execution = &summary.execution;
    let shown = usual.map(|usual| format!("&usual={usual:.0}")).unwrap_or_default();
    let progress = format!("/executions/{}/progress?{}{shown}", execution.id, query.encode(tab));
    let progress = execution.is_running().then_some(progress);
    html! {
        header #summary data-progress=[progress] data-title=(clean(&title(summary)))
            data-done=(execution.statistic.total - execution.statistic.pending)
        {
            div.head {
                h1 { bdi { (plain(&execution.test_set_name)) } }
                @if execution.is_running() {
                    span.badge.wait { span.spinner aria-hidden="true" {} (execution.status) }
                } @else { (result_badge(execution.result, state(summary))) }
                (export::links(summary))
                @if !execution.is_running() {
                    a.button href=(format!("/executions/{}/shares", execution.id)) { "Share" }
                }
                @if summary.changes.unreviewed > 0 {
                    a.button data-key="t" href=(format!("/executions/{}/triage", execution.id)) { "Triage" }
                }
            }
            (sentence(&format!("/executions/{}", execution.id), &summary.changes, &execution.statistic, &gate(verdict)))
            (facts_of(summary, usual))
            @for note in &summary.notes { p.facts { span.fact { "Note: " (plain(note)) } } }
            (bar(&execution.statistic))
            @let page = format!("/executions/{}", execution.id);
            (legend(&page, &execution.statistic, &judged(&page, summary)))
            (tabs(&page, &summary.changes, &execution.statistic, tab))
        }
    }
}

fn facts_of(summary: &Summary, usual: Option<f64>) -> Markup {
    let execution = &summary.execution;
    let left = execution.running_since().zip(usual);
    let subject =
        subject(execution.software_name.as_deref(), execution.software_version.as_deref());
    let revision = revision(execution.branch.as_deref(), execution.commit.as_deref());
    html! {
        p.facts {
            span.fact { (long_time(execution.request_time)) }
            span.fact {
                (taken_by_tests(execution.duration_in_sec, execution.running_since()))
                @if let Some((start, usual)) = left { (time_left(start, usual)) }
            }
            (facts([
                revision.as_deref(),
                execution.environment_name.as_deref(),
                subject.as_deref(),
                Some(execution.request_user.as_str()),
                Some(execution.tags.as_str()),
            ]))
            @if let Some(run) = ci_run(summary) { span.fact { (run) } }
            @if let Some(incident) = &summary.incident_id {
                span.fact {
                    a href=(format!("/projects/{}/incidents/{incident}", summary.project_id)) { "incident" }
                }
            }
            @if let Some(before) = &summary.compared_with {
                span.fact { a href=(format!("/executions/{before}")) { "previous run" } }
            }
        }
    }
}

/// Whether the execution meets the rules of its test set, and which ones it does not.
fn gate(verdict: Option<&Verdict>) -> Markup {
    html! {
        @match verdict.map(|verdict| (verdict.state, &verdict.rules)) {
            Some((VerdictState::Passed, _)) => span.badge.pass { "Gate passed" },
            Some((VerdictState::Failed, rules)) => {
                span.badge.fail { "Gate failed" }
                @for (index, rule) in rules.iter().filter(|rule| !rule.is_met).enumerate() {
                    @if index == 0 { ": " } @else { "; " }
                    (plain(&rule.message))
                }
            }
            _ => {}
        }
    }
}

/// Says in one sentence how many tests failed, and why the gate fails. Each number leads to as many tests.
pub(in crate::page) fn sentence(
    page: &str,
    changes: &Changes,
    statistic: &Statistic,
    gate: &Markup,
) -> Markup {
    let of_result = |result: Outcome, count: i64| {
        let result = Some(result.name().to_owned());
        linked(&address(page, &Filter { result, ..Tab::All.filter() }), count)
    };
    let parts = Tab::FAILING.map(|tab| (tab, tab.count(changes, statistic)));
    let total = number(statistic.total);
    html! {
        p.sentence {
            @if statistic.failures() == 0 {
                "None of " (total) " failed"
                @if statistic.pending > 0 { " so far" }
            } @else {
                @if statistic.failed > 0 || statistic.errors == 0 {
                    (of_result(Outcome::Failed, statistic.failed)) " of " (total) " failed"
                }
                @if statistic.errors > 0 {
                    @if statistic.failed > 0 { ", " }
                    (of_result(Outcome::Error, statistic.errors))
                    @if statistic.failed == 0 { " of " (total) }
                    " had an error"
                }
                @for (index, (tab, count)) in parts.iter().filter(|(_, count)| *count > 0).enumerate() {
                    @if *tab == Tab::Flaky { "; " } @else if index == 0 { ": " } @else { ", " }
                    (linked(&address(page, &tab.filter()), *count)) " " (tab.words())
                }
            }
            ". " (gate)
        }
    }
}

fn linked(href: &str, count: i64) -> Markup {
    html! { a href=(href) { b { (number(count)) } } }
}

/// The link to the run of the CI system.
fn ci_run(summary: &Summary) -> Option<Markup> {
    let execution = &summary.execution;
    let build = execution.build.as_deref().unwrap_or("run");
    let url = link(execution.ci_url.as_deref()?)?;
    let (Link::Elsewhere(url) | Link::Artifact(url)) = url;
    Some(html! { a href=(url) rel="noopener noreferrer" { "CI " bdi { (plain(build)) } } })
}

/// The numbers of results, in the order of the bar, and others. Each leads to its results.
pub(in crate::page) fn legend(page: &str, statistic: &Statistic, others: &Markup) -> Markup {
    let parts = [
        ("pass", statistic.passed, "passed", Outcome::Passed),
        ("fail", statistic.failed, "failed", Outcome::Failed),
        ("error", statistic.errors, "with an error", Outcome::Error),
        ("warn", statistic.aborted, "aborted", Outcome::Aborted),
        ("none", statistic.canceled, "skipped", Outcome::Canceled),
    ];
    let of = |result: Outcome| {
        let result = Some(result.name().to_owned());
        address(page, &Filter { result, ..Tab::All.filter() })
    };
    html! {
        ul.legend {
            @for (class, count, label, result) in parts.into_iter().filter(|part| part.1 > 0) {
                li { i class=(class) {} a href=(of(result)) { b { (number(count)) } " " (label) } }
            }
            @if statistic.pending > 0 {
                li { i.wait {} b { (number(statistic.pending)) } " pending" }
            }
            (others)
        }
    }
}

/// The number of failures that need a review, and the way to those that are known.
fn judged(page: &str, summary: &Summary) -> Markup {
    let filter = Filter { unreviewed: Some("true".to_owned()), ..Filter::default() };
    let Changes { unreviewed, muted, .. } = summary.changes;
    html! {
        @if unreviewed > 0 {
            li { a href=(address(page, &filter)) { b { (number(unreviewed)) } " to review" } }
        }
        @if muted > 0 {
            li { a href=(format!("/projects/{}/knownfailures", summary.project_id)) { "Known failures" } }
        }
    }
}

/// Links to the parts of the results on a page, with their numbers.
pub(in crate::page) fn tabs(
    page: &str,
    changes: &Changes,
    statistic: &Statistic,
    current: Tab,
) -> Markup {
    html! {
        nav.tabs aria-label="Results" {
            @for tab in Tab::EACH {
                @let (label, class) = match tab {
                    Tab::New => ("New", "fail"),
                    Tab::CauseChanged => ("Other cause", "fail"),
                    Tab::Still => ("Still failing", "fail"),
                    Tab::Flaky => ("Flaky", "flaky"),
                    Tab::Fixed => ("Fixed", "pass"),
                    Tab::Muted => ("Muted", "muted"),
                    Tab::All => ("All", "all"),
                };
                @let count = tab.count(changes, statistic);
                @if count > 0 || tab != Tab::CauseChanged {
                    a class=(if count == 0 { "zero" } else { class })
                        href=(address(page, &tab.filter()))
                        aria-current=[(tab == current).then_some("page")]
                    { b { (number(count)) } " " (label) }
                }
            }
        }
    }
}

/// A search in a part of the results, which keeps the rest of the filter.
pub(super) fn search(page: &str, tab: Tab, label: &str, filter: &Filter) -> Markup {
    html! {
        form.search role="search" action=(page) {
            @if let Some(change) = tab.change() { input type="hidden" name="change" value=(change.name()); }
            @if tab == Tab::Muted { input type="hidden" name="muted" value="true"; }
            @if filter.unreviewed.is_some() { input type="hidden" name="unreviewed" value="true"; }
            (filter.place.hidden())
            input type="search" name="q" aria-label=(label) placeholder=(label)
                value=(clean(filter.q.as_deref().unwrap_or_default()));
            button { "Search" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_keeps_the_rest_of_the_filter() {
        let query = Paged::<Filter>::parse("change=New&suite=checkout&unreviewed=true");
        let html = search("/executions/1", Tab::New, "Search tests", &query.filter).into_string();
        for (name, value) in [("change", "New"), ("suite", "checkout"), ("unreviewed", "true")] {
            let field = format!("name=\"{name}\" value=\"{value}\"");
            assert!(html.contains(&field), "{field} in {html}");
        }
    }
}
