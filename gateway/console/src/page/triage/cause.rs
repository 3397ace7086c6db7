//! A cause that is triaged: its entry in the list of all, its example and the last decision about it.

use maud::{Markup, html};
use uuid::Uuid;

use crate::{
    api::address,
    page::{part::ticket, review::reviewer, row::place},
    record::{Cause, Project, ReportEntry},
    text::{ansi, counted, number, plain},
};

/// A cause in the list of all.
pub(super) fn entry(cause: &Cause, href: &str, is_current: bool) -> Markup {
    let headline = cause.headline.lines().next().unwrap_or_default();
    html! {
        li.judged[cause.unreviewed == 0] {
            a href=(href) aria-current=[is_current.then_some("page")] {
                b { (number(cause.count)) } " "
                @if headline.is_empty() { "Without a message" } @else { bdi { (plain(headline)) } }
                @if cause.unreviewed == 0 { span.small { " judged" } }
                @else if cause.unreviewed < cause.count {
                    span.small { " " (number(cause.unreviewed)) " left" }
                }
            }
        }
    }
}

/// The message of a cause, and its first tests.
pub(super) fn example(cause: &Cause, execution: Uuid) -> Markup {
    // The tests that are muted do not count here.
    let from = format!("fingerprint={}&muted=false", cause.fingerprint);
    let list = format!("/executions/{execution}?{from}");
    html! {
        h2 { (counted(cause.count, "test")) " with one cause" }
        @if !cause.headline.is_empty() { pre.headline.alone { (ansi(&cause.headline)) } }
        ul.examples { @for report in &cause.reports {
            li {
                a href=(address(&format!("/reports/{}", report.id), &[("from", &from)])) {
                    bdi { (plain(&report.test_case_name)) }
                }
                " " (place(&report.test_case_identifier, &report.test_case_name))
                @if !report.change_reason.is_empty() { " " span.small { (plain(&report.change_reason)) } }
            }
        } }
        p.more { a href=(list) { "All tests with this cause" } }
    }
}

/// The last decision about a cause, which the form begins with.
pub(super) fn decision(before: Option<&ReportEntry>, project: &Project) -> Markup {
    html! {
        @if let Some(report) = before {
            p.review {
                "In the run before: " b { (report.status) } (reviewer(&report.review)) " "
                (ticket(&report.ticket, project)) " "
                bdi { (plain(report.comment.as_deref().unwrap_or_default())) }
            }
        }
    }
}
