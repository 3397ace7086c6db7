//! Parts that several pages have.

use maud::{Markup, html};

use crate::{
    chart::{bar, glyph_of_run},
    layout::Crumb,
    record::{ExecutionEntry, Outcome, Project, Time},
    text::{
        Link, clean, counted, duration_if_known, link, link_to_ticket, plain, short_time,
        time_since,
    },
};

/// Returns the trail of pages below the list of projects.
pub(super) fn below_projects() -> Vec<Crumb> {
    vec![crumb("/".to_owned(), "Projects")]
}

/// Returns the trail of pages below a project.
pub(super) fn below_project(project: &Project) -> Vec<Crumb> {
    let mut trail = below_projects();
    trail.push(crumb(format!("/projects/{}", project.id), &project.name));
    trail
}

/// Returns the trail of pages below a test set.
pub(super) fn below_set(project: &Project, id: &str, name: &str) -> Vec<Crumb> {
    let mut trail = below_project(project);
    trail.push(crumb(format!("/projects/{}/sets/{id}", project.id), name));
    trail
}

fn crumb(path: String, name: &str) -> Crumb {
    Crumb(path, html! { bdi { (plain(name)) } })
}

/// A result with its name.
pub(super) fn result_badge(outcome: Outcome, label: &str) -> Markup {
    html! { span class=(format!("badge {}", outcome.class())) { (label) } }
}

/// A ticket, if there is one: a link if it is a URL, or if the project says where its tickets are.
pub(super) fn ticket(ticket: &str, project: &Project) -> Markup {
    let own = link(ticket).filter(|link| matches!(link, Link::Elsewhere(_)));
    let name = own.as_ref().map(Link::file_name).filter(|name| !name.is_empty()).unwrap_or(ticket);
    let name = html! { bdi { (plain(name)) } };
    let link = own.clone().or_else(|| link_to_ticket(ticket, &project.ticket_url));
    html! {
        @if let Some(link) = link {
            a.badge.none href=(link.href()) rel="noopener noreferrer" { (name) }
        } @else if !ticket.is_empty() { span.badge.none { (name) } }
    }
}

/// Said instead of failures and steps that an execution counts and does not have any more.
pub(super) const EXPIRED: &str = "The messages and steps of these failures are not stored any more. They are removed \
                                  after the retention of the project.";

/// The meaning of the duration of a test, on every page.
pub(super) const OF_TEST: &str = "Sum of the last attempts of all instances";

/// How long the tests of an execution have taken, unless that is not known. While it runs, how long it has
/// been running.
pub(super) fn taken_by_tests(seconds: f64, running_since: Option<Time>) -> Markup {
    html! {
        @if let Some(start) = running_since { "running " (time_since(start)) }
        @else if let Some(duration) = duration_if_known(seconds) {
            span title="From the first start to the last finish of a test, or the sum of the tests if these times are not known" {
                (duration)
            }
        }
    }
}

/// Short facts beside each other; empty ones are left out.
pub(super) fn facts<'a>(facts: impl IntoIterator<Item = Option<&'a str>>) -> Markup {
    let facts = facts.into_iter().flatten().filter(|fact| !fact.is_empty());
    html! { @for fact in facts { span.fact { bdi { (plain(fact)) } } } }
}

/// Returns the name and the identifier of software, if there is one.
pub(super) fn subject(name: Option<&str>, identifier: Option<&str>) -> Option<String> {
    let parts = [name, identifier].into_iter().flatten().filter(|part| !part.is_empty());
    let subject = parts.collect::<Vec<_>>().join(" ");
    (!subject.is_empty()).then_some(subject)
}

/// Branch and short commit, such as `main@1a2b3c4`.
pub(super) fn revision(branch: Option<&str>, commit: Option<&str>) -> Option<String> {
    let commit = commit.map(|commit| commit.chars().take(9).collect::<String>());
    match (branch, commit) {
        (Some(branch), Some(commit)) => Some(format!("{branch} @ {commit}")),
        (branch, commit) => branch.map(str::to_owned).or(commit),
    }
}

/// An execution as a row of a list.
pub(super) fn execution_row(execution: &ExecutionEntry, with_set: bool) -> Markup {
    let statistic = &execution.statistic;
    let failures = statistic.failures();
    let revision = revision(execution.branch.as_deref(), execution.commit.as_deref());
    html! {
        li.row.run {
            span.mark {
                @if execution.is_running() {
                    span.spinner role="img" aria-label=(execution.status) {}
                } @else { (glyph_of_run(execution.result)) }
            }
            span.what {
                a href=(format!("/executions/{}", execution.id)) {
                    @if with_set { bdi { (plain(&execution.test_set_name)) } ", " }
                    (short_time(execution.request_time))
                }
                span.facts {
                    (facts([
                        revision.as_deref(),
                        execution.environment_name.as_deref(),
                        Some(execution.tags.as_str()),
                    ]))
                }
            }
            span.share {
                (bar(statistic))
                span.small {
                    @if failures > 0 { b.fail { (counted(failures, "failure")) } " of " }
                    (counted(statistic.total, "test"))
                }
            }
            span.time { (taken_by_tests(execution.duration_in_sec, execution.running_since())) }
        }
    }
}

/// A field for a number from `least` to `most`. Without a value, the interface has a default.
pub(super) fn number_field(
    name: &str,
    label: &str,
    (least, most): (i32, Option<i32>),
    value: Option<&str>,
) -> Markup {
    html! {
        label.field {
            span { (label) }
            input type="number" name=(name) min=(least) max=[most] step="any"
                value=(clean(value.unwrap_or_default()));
        }
    }
}

/// A labelled field of a filter.
pub(super) fn text_field(name: &str, label: &str, value: Option<&str>) -> Markup {
    html! {
        label.field {
            span { (label) }
            input name=(name) value=(clean(value.unwrap_or_default()));
        }
    }
}

/// A labelled choice of a filter.
pub(super) fn choice(
    name: &str,
    label: &str,
    options: &[(&str, &str)],
    value: Option<&str>,
) -> Markup {
    let options = [("", "any")].into_iter().chain(options.iter().copied());
    select_field(name, label, options, value.unwrap_or_default())
}

/// A labelled choice between values, each of which has a label.
pub(super) fn select_field<'a>(
    name: &str,
    label: &str,
    options: impl IntoIterator<Item = (&'a str, &'a str)>,
    value: &str,
) -> Markup {
    html! {
        label.field {
            span { (label) }
            select name=(name) {
                @for (option, meaning) in options {
                    option value=(clean(option)) selected[option == value] { (clean(meaning)) }
                }
            }
        }
    }
}

/// A labelled box to check.
pub(super) fn check_field(name: &str, label: &str, is_checked: bool) -> Markup {
    html! {
        label.check {
            input type="checkbox" name=(name) value="true" checked[is_checked];
            " " (label)
        }
    }
}
