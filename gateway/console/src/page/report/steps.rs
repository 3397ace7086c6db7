//! The steps of an attempt, those that failed first.

use maud::{Markup, html};

use super::{content, view::View};
use crate::{
    api::address,
    chart::{glyph, strip},
    record::{Attempt, Instance, InstanceEntry, Outcome, Report, Step},
    text::{Allowance, Link, ansi, counted, duration, link, number, plain},
};

/// Maximum number of steps on the page.
const STEPS: usize = 50;

/// Maximum number of pictures of a step, and of checks that failed without failing it.
const EXTRAS: usize = 20;

/// Links to the instances, and to the attempts of the one that is shown.
pub(super) fn choices(
    report: &Report,
    instances: &[InstanceEntry],
    shown: Option<&Instance>,
    view: &View,
) -> Markup {
    let to = |instance: &str, attempt: Option<i64>| {
        let attempt = attempt.map(|number| number.to_string());
        let view = View { instance: Some(instance.to_owned()), attempt, from: view.from.clone() };
        address(&format!("/reports/{}", report.id), &view)
    };
    html! {
        @if instances.len() > 1 {
            nav.tabs.small-tabs aria-label="Instances" {
                @for entry in instances {
                    a href=(to(&entry.id, None))
                        aria-current=[shown.is_some_and(|shown| shown.id == entry.id).then_some("page")]
                    {
                        (glyph(entry.result)) " " (number(entry.instance_nr))
                        @if !entry.variant.is_empty() { " " bdi { (plain(&entry.variant)) } }
                        " " span.dim { (duration(entry.duration_in_sec)) }
                    }
                }
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
                        span.dim { (duration(attempt.duration_in_sec)) }
                    }
                }
            }
        }
    }
}

/// Shows the steps of an attempt. `page` is the path of the test, and `instance` that of the instance
/// in its queries.
pub(in crate::page) fn steps(page: &str, instance: &str, attempt: &Attempt) -> Markup {
    let mut rest = Allowance::of_page();
    let (failed, others): (Vec<_>, Vec<_>) =
        attempt.steps.iter().partition(|step| step.result.is_failure());
    let first_failed = failed.first().map(|step| step.number);
    let ordered = failed.into_iter().chain(others);
    let at = content::Shown { page, instance, attempt };
    html! {
        (files(attempt))
        @if attempt.steps.is_empty() { p.empty { "This run has no steps." } }
        @else { h2 { "Steps" } }
        @let only = attempt.steps.len() == 1;
        div.steps { @for step in ordered.take(STEPS) {
            (panel(step, only || first_failed == Some(step.number), &at, &mut rest))
        } }
        @if attempt.steps.len() > STEPS {
            p.hint {
                "Only " (STEPS) " of " (counted(i64::try_from(attempt.steps.len()).unwrap_or(i64::MAX), "step"))
                " are shown."
            }
        }
    }
}

fn panel(step: &Step, is_open: bool, at: &content::Shown<'_>, rest: &mut Allowance) -> Markup {
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
                span.time { (duration(step.duration_in_sec)) }
            }
            (text(step, content::Part::Actual, at, rest))
            (text(step, content::Part::Expected, at, rest))
            @if step.test_input.len() > title(&step.test_input).len() {
                (text(step, content::Part::Input, at, rest))
            }
            @for message in step.soft_verification.iter().take(EXTRAS) {
                div.text { h3 { "Check that failed" } pre tabindex="0" { (ansi(rest.cut(message).head)) } }
            }
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
    html! {
        @if !whole.trim().is_empty() {
            div class=(format!("text {}", part.class(step))) {
                h3 { (part.label()) }
                div.code data-copy="" {
                    pre tabindex="0" {
                        (ansi(excerpt.head))
                        @if excerpt.omitted > 0 {
                            span.cut { "\n… " (counted(i64::try_from(excerpt.omitted).unwrap_or(i64::MAX), "byte")) " left out …\n" }
                            (ansi(excerpt.tail))
                        }
                    }
                }
                @if excerpt.omitted > 0 { p { a href=(at.link(step, part)) { "Whole text" } } }
            }
        }
    }
}

/// Screenshots that Assay stores are shown, others are links.
fn pictures(step: &Step) -> Markup {
    let all = step.screenshots.iter().map(String::as_str);
    let all =
        all.chain([step.thumbnail.as_str()].into_iter().filter(|_| step.screenshots.is_empty()));
    let links: Vec<_> = all.filter_map(link).take(EXTRAS).collect();
    html! {
        @if !links.is_empty() {
            div.pictures { @for (index, link) in links.iter().enumerate() {
                @match link {
                    Link::Artifact(path) => a href=(path) {
                        img src=(path) loading="lazy" alt=(format!("Screenshot {} of step {}", index + 1, step.number));
                    },
                    Link::Elsewhere(url) => a href=(url) rel="noopener noreferrer" {
                        "Screenshot " (index + 1) " (" bdi { (plain(link.file_name())) } ")"
                    },
                }
            } }
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
