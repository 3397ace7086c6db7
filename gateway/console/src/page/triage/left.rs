//! The failures of an execution that are left to judge, and why a list of their causes has none.

use maud::{Markup, html};

use super::Filter;
use crate::{
    page::{paged::Paged, part::EXPIRED},
    record::{Cause, Summary},
    text::{counted, number},
};

/// Returns the number of failures that are not muted.
fn failing(summary: &Summary) -> i64 {
    summary.execution.statistic.failures() - summary.changes.muted
}

pub(super) fn progress(summary: &Summary) -> Markup {
    let (left, failing) = (summary.changes.unreviewed, failing(summary));
    html! {
        span.dim #left {
            @if left == 0 { "All " (counted(failing, "failure")) " are judged" }
            @else { (number(left)) " of " (number(failing)) " left" }
        }
    }
}

/// Says that the cause that was asked for is not listed, and which one is shown.
pub(super) fn missing(shown: Option<&Cause>) -> Markup {
    html! {
        p.alert role="status" {
            "The cause of this address is not in this list: its failures may be muted since, removed after the \
            retention of the project, or on another page."
            @if shown.is_some() { " The first cause of the list is shown." }
        }
    }
}

/// Says why a list has no cause, and leads to the tests that need a review nevertheless.
pub(super) fn nothing(list: &Paged<Filter>, summary: &Summary) -> Markup {
    let page = format!("/executions/{}?unreviewed=true", summary.execution.id);
    html! {
        p.empty { (reason(list, summary)) }
        @if summary.changes.unreviewed > 0 { p.more { a href=(page) { "Tests to review" } } }
    }
}

/// Returns why a list has no cause. Failures that are counted have one as long as their results are stored.
fn reason(list: &Paged<Filter>, summary: &Summary) -> &'static str {
    let has_all = list.filter.all.is_some();
    let count = if has_all { failing(summary) } else { summary.changes.unreviewed };
    let is_expired = count > 0 && !summary.execution.is_running();
    match (has_all, &list.cursor) {
        (_, None) if is_expired => EXPIRED,
        (false, None) => "No failure needs a review.",
        (false, Some(_)) => "No failure of this page and those after it needs a review.",
        (true, _) => "No failure has a cause that is not muted.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(failed: i64, unreviewed: i64, muted: i64) -> Summary {
        serde_json::from_value(serde_json::json!({
            "Execution": {
                "Id": "7", "TestSetId": "s", "TestSetName": "Nightly", "RequestUser": "Ada",
                "RequestTime": "2026-03-01T00:00:00Z", "Tags": "", "Result": "Failed",
                "Status": "Completed", "DurationInSec": 1,
                "Statistic": {
                    "TestCasesTotal": 99, "TestCasesPassed": 0, "TestCasesFailed": failed,
                    "TestCasesWithError": 0, "TestCasesAborted": 0, "TestCasesCanceled": 0,
                    "TestCasesPending": 0,
                },
            },
            "ProjectId": "p", "Notes": [],
            "Changes": {
                "New": 0, "Still": failed, "Fixed": 0, "Flaky": 0, "Muted": muted,
                "Unreviewed": unreviewed,
            },
        }))
        .unwrap()
    }

    #[test]
    fn a_list_without_causes_denies_no_failure_that_is_left() {
        let of = |filter| Paged { filter, cursor: None };
        for (filter, summary, expected) in [
            (Filter::default(), summary(45, 45, 0), EXPIRED),
            (Filter::all(), summary(45, 0, 0), EXPIRED),
            (Filter::default(), summary(45, 0, 0), "No failure needs a review."),
            (Filter::all(), summary(2, 0, 2), "No failure has a cause that is not muted."),
        ] {
            assert_eq!(reason(&of(filter), &summary), expected);
        }
        let html = nothing(&of(Filter::default()), &summary(45, 45, 0)).into_string();
        assert!(html.contains("href=\"/executions/7?unreviewed=true\""), "{html}");
    }
}
