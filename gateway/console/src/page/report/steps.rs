//! The steps of an attempt, in their order.

use std::ops::Range;

use maud::{Markup, html};

use super::{content, view::View};
use crate::{
    api::{List, address},
    chart::{glyph, strip},
    page::paged::shown_of,
    record::{Attempt, Instance, InstanceEntry, Outcome, Report, Step},
    text::{Allowance, Link, ansi, counted, link, number, plain, taken},
};

/// Maximum number of steps on the page, and of those before the first one that failed.
const STEPS: usize = 50;
const BEFORE: usize = 5;

/// Maximum number of pictures of a step, and of checks that failed without failing it.
const EXTRAS: usize = 20;

/// Links to the instances, and to the attempts of the one that is shown.
pub(super) fn choices(
    report: &Report,
    instances: &List<InstanceEntry>,
    shown: Option<&Instance>,
    view: &View,
) -> Markup {
    let to = |instance: &str, attempt: Option<i64>| {
        let attempt = attempt.map(|number| number.to_string());
        let of_list = View { attempt: None, step: None, ..view.clone() };
        let view = View { instance: Some(instance.to_owned()), attempt, ..of_list };
        address(&format!("/reports/{}", report.id), &view)
    };
    let from = |instances: Option<&String>| {
        let view =
            View { instances: instances.cloned(), from: view.from.clone(), ..View::default() };
        address(&format!("/reports/{}", report.id), &view)
    };
    html! {
        @if instances.items.len() > 1 || view.instances.is_some() {
            nav.tabs.small-tabs aria-label="Instances" {
                @for entry in &instances.items {
                    a href=(to(&entry.id, None))
                        aria-current=[shown.is_some_and(|shown| shown.id == entry.id).then_some("page")]
                    {
                        (glyph(entry.result)) " " (number(entry.instance_nr))
                        @if !entry.variant.is_empty() { " " bdi { (plain(&entry.variant)) } }
                        " " span.dim { (taken(entry.result, entry.duration_in_sec)) }
                    }
                }
                @if view.instances.is_some() { a href=(from(None)) { "First instances" } }
                @if instances.next.is_some() { a href=(from(instances.next.as_ref())) { "Further instances" } }
            }
        }
        @if let Some(instance) = shown && !instance.attempts.is_empty() {
            @let current = instance.attempt(view).number;
            nav.tabs.small-tabs aria-label="Attempts" {
                @for attempt in instance.attempts.iter().chain([&instance.last]) {
                    a href=(to(&instance.id, Some(attempt.number)))
                        aria-current=[(attempt.number == current).then_some("page")]
                    {
                        (glyph(attempt.result)) " Attempt " (attempt.number) " "
                        span.dim { (taken(attempt.result, attempt.duration_in_sec)) }
                    }
                }
            }
        }
    }
}

/// Shows the steps of an attempt. `page` is the path of the test, and `instance` that of the instance
/// in its queries. `here` is the address of the attempt, and `first` the number of a step.
pub(in crate::page) fn steps(
    page: &str,
    instance: &str,
    attempt: &Attempt,
    here: &str,
    first: Option<&str>,
) -> Markup {
    let mut rest = Allowance::of_page();
    let shown = shown(&attempt.steps, first);
    let failed = attempt.steps.iter().find(|step| step.result.is_failure());
    let failed = failed.map(|step| step.number);
    let at = content::Shown { page, instance, attempt };
    let before = shown.start.saturating_sub(STEPS)..shown.start;
    let after = shown.end..attempt.steps.len().min(shown.end + STEPS);
    html! {
        (files(attempt))
        @if attempt.steps.is_empty() { p.empty { "This run has no steps." } }
        @else { h2 { "Steps" } }
        @let only = attempt.steps.len() == 1;
        (more(&attempt.steps[before], here))
        div.steps { @for step in &attempt.steps[shown] {
            (panel(step, only || failed == Some(step.number), &at, &mut rest))
        } }
        (more(&attempt.steps[after], here))
    }
}

/// Returns the steps of the page.
fn shown(steps: &[Step], first: Option<&str>) -> Range<usize> {
    let number = first.and_then(|first| first.parse::<i64>().ok());
    let asked = number.and_then(|number| steps.iter().position(|step| step.number == number));
    let failed = || steps.iter().position(|step| step.result.is_failure());
    let start = asked.or_else(|| failed().map(|failed| failed.saturating_sub(BEFORE)));
    // The last page is a whole one.
    let start = start.unwrap_or_default().min(steps.len().saturating_sub(STEPS));
    start..steps.len().min(start + STEPS)
}

/// A link to steps before or after those of the page.
fn more(steps: &[Step], here: &str) -> Markup {
    let separator = if here.contains('?') { '&' } else { '?' };
    html! {
        @if let (Some(first), Some(last)) = (steps.first(), steps.last()) {
            p.more {
                a href=(format!("{here}{separator}step={}", first.number)) {
                    "Steps " (first.number) " to " (last.number)
                }
            }
        }
    }
}

fn panel(step: &Step, is_open: bool, at: &content::Shown<'_>, rest: &mut Allowance) -> Markup {
    let checks = step.soft_verification.len();
    let before: Vec<Outcome> = step.history.iter().rev().map(|run| run.result).collect();
    html! {
        details.step open[is_open || step.result.is_failure()] {
            summary {
                (glyph(step.result))
                span.what {
                    "Step " (step.number)
                    @if !step.test_input.is_empty() { " " bdi.dim { (plain(title(&step.test_input))) } }
                }
                @if !before.is_empty() { span.history { (strip(&before)) } }
                span.time { (taken(step.result, step.duration_in_sec)) }
            }
            (text(step, content::Part::Actual, at, rest))
            (text(step, content::Part::Expected, at, rest))
            @if step.test_input.len() > title(&step.test_input).len() {
                (text(step, content::Part::Input, at, rest))
            }
            @for message in step.soft_verification.iter().take(EXTRAS) {
                div.text { h3 { "Check that failed" } pre tabindex="0" { (ansi(rest.cut(message).head)) } }
            }
            (shown_of(EXTRAS.min(checks), checks, "check"))
            (pictures(step))
        }
    }
}

/// Returns the first line of a text, for a title.
fn title(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    &line[..line.floor_char_boundary(200)]
}

/// A text of a step, or both ends of it with a link to the whole.
fn text(step: &Step, part: content::Part, at: &content::Shown<'_>, rest: &mut Allowance) -> Markup {
    let whole = part.of(step);
    let excerpt = rest.cut(whole);
    let link = (excerpt.omitted > 0).then(|| at.link(step, part));
    html! {
        @if !whole.trim().is_empty() {
            div class=(format!("text {}", part.class(step))) {
                h3 { (part.label()) }
                div.code data-copy=(link.as_deref().unwrap_or_default()) {
                    pre tabindex="0" {
                        (ansi(excerpt.head))
                        @if excerpt.omitted > 0 {
                            span.cut { "\n… " (counted(i64::try_from(excerpt.omitted).unwrap_or(i64::MAX), "byte")) " left out …\n" }
                            (ansi(excerpt.tail))
                        }
                    }
                }
                @if let Some(link) = &link { p { a href=(link) { "Whole text" } } }
            }
        }
    }
}

/// Screenshots that Assay stores are shown, others are links.
fn pictures(step: &Step) -> Markup {
    let all = step.screenshots.iter().map(String::as_str);
    let all =
        all.chain([step.thumbnail.as_str()].into_iter().filter(|_| step.screenshots.is_empty()));
    let links: Vec<_> = all.filter_map(link).collect();
    let shown = &links[..links.len().min(EXTRAS)];
    html! {
        @if !links.is_empty() {
            div.pictures { @for (index, link) in shown.iter().enumerate() {
                @match link {
                    Link::Artifact(path) => a href=(path) {
                        img src=(path) loading="lazy" alt=(format!("Screenshot {} of step {}", index + 1, step.number));
                    },
                    Link::Elsewhere(url) => a href=(url) rel="noopener noreferrer" {
                        "Screenshot " (index + 1) " (" bdi { (plain(link.file_name())) } ")"
                    },
                }
            } }
            (shown_of(shown.len(), links.len(), "picture"))
        }
    }
}

/// Links to the files of an attempt.
fn files(attempt: &Attempt) -> Markup {
    let files = [
        ("Output", &attempt.execution_log_uri),
        ("Debug log", &attempt.debug_log_uri),
        ("Installation log", &attempt.installation_log_uri),
        ("Report", &attempt.report_uri),
        ("Artifacts", &attempt.artifacts_uri),
    ];
    let files: Vec<_> =
        files.into_iter().filter_map(|(label, url)| Some((label, link(url)?))).collect();
    html! {
        @if !files.is_empty() {
            p.facts.files { @for (label, file) in &files {
                span.fact {
                    a href=(file.href()) rel="noopener noreferrer" {
                        (label) ": " bdi { (plain(file.file_name())) }
                    }
                }
            } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(count: i64, failed: i64) -> Vec<Step> {
        let step = |number| {
            let result = if number == failed { "Failed" } else { "Passed" };
            serde_json::from_value(serde_json::json!({
                "StepNr": number, "DurationInSec": 1.0, "TestInput": "", "ActualResult": "",
                "ExpectedResult": "", "Result": result, "Screenshots": [], "SoftVerification": [],
            }))
        };
        (1..=count).map(|number| step(number).unwrap()).collect()
    }

    #[test]
    fn steps_are_in_order_around_the_one_that_failed() {
        for (count, failed, first, expected) in [
            (500, 400, None, 394..444),
            (500, 0, None, 0..50),
            (500, 499, None, 450..500),
            (500, 400, Some("51"), 50..100),
            (500, 400, Some("x"), 394..444),
            (20, 12, None, 0..20),
            (0, 0, None, 0..0),
        ] {
            assert_eq!(shown(&steps(count, failed), first), expected, "{count} {failed} {first:?}");
        }
    }

    #[test]
    fn an_instance_that_did_not_run_has_taken_no_time() {
        let entry = |number: i64, result: &str| -> InstanceEntry {
            serde_json::from_value(serde_json::json!({
                "Id": number.to_string(), "InstanceNr": number, "DurationInSec": 0,
                "Result": result, "Variant": "", "Attempt": 1,
            }))
            .unwrap()
        };
        let instances = List { items: vec![entry(1, "Passed"), entry(2, "Canceled")], next: None };
        let html = choices(&Report::example(), &instances, None, &View::default()).into_string();
        assert_eq!((html.matches(">0 ms<").count(), html.matches(">–<").count()), (1, 1), "{html}");
    }

    #[test]
    fn other_steps_are_a_link_away() {
        let links = more(&steps(50, 0), "/reports/1?from=a").into_string();
        assert!(links.contains("\"/reports/1?from=a&amp;step=1\""), "{links}");
        assert!(links.contains("Steps 1 to 50") && more(&[], "/").into_string().is_empty());
    }
}
