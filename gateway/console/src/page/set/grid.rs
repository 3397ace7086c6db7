//! The grid of a test set: a row for each test, those first that fail now, and a column for each execution,
//! headed by its day, commit and number of failures. Each failure leads to its report. Tests that passed in all
//! of the executions share one row, which lists them when it is opened.

use chrono::Datelike as _;
use maud::{Markup, html};

use super::{Filter, Runs};
use crate::{
    api::address,
    chart::{cells, failures, glyph_of_run},
    record::{Grid, GridCase, GridExecution, GridFailure, Outcome},
    text::{clean, exact_time, plain, tooltip_time},
};

/// Number of characters of a commit.
const COMMIT: usize = 7;

/// Number of tests from which on those that passed in all executions share a row.
const FOLDED: usize = 2;

/// The results of tests that failed, or of all tests. `page` is the path of the page. Tests lead to the runs that the
/// grid is about.
pub(super) fn table(grid: &Grid, page: &str, filter: &Filter, runs: &Runs<'_>) -> Markup {
    let of = |all: Option<&str>| {
        address(page, &Filter { all: all.map(str::to_owned), ..filter.clone() })
    };
    let current = |is_all: bool| (filter.all.is_some() == is_all).then_some("page");
    let (cases, green) = folded(&grid.cases);
    html! {
        h2 { "Tests" }
        nav.tabs.small-tabs aria-label="Tests" {
            a href=(of(None)) aria-current=[current(false)] { "Failed" }
            a href=(of(Some("tests"))) aria-current=[current(true)] { "All" }
        }
        @if grid.cases.is_empty() {
            p.empty {
                @if filter.all.is_some() { "No test has a result in these executions." }
                @else { "No test failed in these executions." }
            }
        }
        div.grid tabindex="0" role="region" aria-label="Results of the tests in the latest executions" {
            table {
                thead { tr {
                    th scope="col" { "Test" span.utc { " (days in UTC)" } }
                    td {
                        (days(&grid.executions))
                        (failures(grid.executions.iter().map(|execution| execution.failures)))
                        ol.columns { @for execution in &grid.executions { li { (column(execution)) } } }
                    }
                } }
                tbody {
                    @for case in cases { (row(case, &grid.executions, runs)) }
                    @if !green.is_empty() { (green_row(&green, runs)) }
                }
            }
        }
    }
}

/// The days of executions in UTC, each at its first column, which the script replaces by those of the reader. Readers
/// without eyes have them in the columns.
fn days(executions: &[GridExecution]) -> Markup {
    let mut before = None;
    let mut is_new = |execution: &GridExecution| {
        let day = execution.request_time.date_naive();
        let is_new_month =
            before.is_none_or(|before: chrono::NaiveDate| before.month() != day.month());
        let is_new_day = before.is_none_or(|before| before != day);
        before = Some(day);
        (is_new_month, is_new_day)
    };
    html! {
        div.days aria-hidden="true" {
            @for execution in executions {
                @let (is_new_month, is_new_day) = is_new(execution);
                span data-time=(exact_time(execution.request_time)) {
                    @if is_new_month { b { (execution.request_time.format("%b")) } }
                    @if is_new_day { (execution.request_time.format("%-d")) }
                }
            }
        }
    }
}

/// The head of a column, which leads to its execution.
fn column(execution: &GridExecution) -> Markup {
    let commit = execution.commit.as_deref().unwrap_or_default();
    let short: String = commit.chars().take(COMMIT).collect();
    html! {
        a href=(format!("/executions/{}", execution.id)) title=(title(execution))
            data-time=(exact_time(execution.request_time))
        {
            span.commit { (plain(&short)) }
            (glyph_of_run(execution.result))
        }
    }
}

/// Returns what is known about an execution.
fn title(execution: &GridExecution) -> String {
    let time = tooltip_time(execution.request_time);
    let known = [
        Some(time.as_str()),
        execution.branch.as_deref(),
        execution.commit.as_deref(),
        execution.environment_name.as_deref(),
    ];
    let known = known.into_iter().flatten().filter(|text| !text.is_empty());
    clean(&known.collect::<Vec<_>>().join(", ")).into_owned()
}

/// Returns the tests that have a row of their own, and those that passed in all executions.
fn folded(cases: &[GridCase]) -> (Vec<&GridCase>, Vec<&GridCase>) {
    let (green, others): (Vec<_>, Vec<_>) = cases.iter().partition(|case| case.is_green());
    if green.len() < FOLDED { (cases.iter().collect(), Vec::new()) } else { (others, green) }
}

fn row(case: &GridCase, executions: &[GridExecution], runs: &Runs<'_>) -> Markup {
    html! {
        tr.row {
            th scope="row" { (name(case, runs)) }
            td { div.outcomes { (outcomes(case, executions)) } }
        }
    }
}

/// The row of tests that passed in all executions.
fn green_row(cases: &[&GridCase], runs: &Runs<'_>) -> Markup {
    html! {
        tr.green {
            th scope="row" colspan="2" {
                details {
                    summary { (cases.len()) " tests passed in all of these" }
                    ul { @for case in cases { li { (name(case, runs)) } } }
                }
            }
        }
    }
}

fn name(case: &GridCase, runs: &Runs<'_>) -> Markup {
    html! {
        @if !case.suites.is_empty() {
            span.suites { bdi { (plain(&case.suites.join(" \u{203a} "))) } }
        }
        a href=(address(&format!("/cases/{}", case.test_case_id), runs)) title=(clean(&case.test_case_identifier)) {
            bdi { (plain(&case.test_case_name)) }
        }
    }
}

/// The results of a test. Failures lead to their reports; the results between them are drawn at once.
fn outcomes(case: &GridCase, executions: &[GridExecution]) -> Markup {
    let mut failures = case.failures.iter().peekable();
    let mut parts: Vec<(String, Option<&GridFailure>)> = Vec::new();
    for (letter, execution) in case.outcomes.chars().zip(executions) {
        let failure = failures.next_if(|failure| failure.execution_id == execution.id);
        match parts.last_mut() {
            Some((letters, None)) if failure.is_none() => letters.push(letter),
            _ => parts.push((letter.to_string(), failure)),
        }
    }
    html! {
        @for (letters, failure) in &parts {
            @match failure {
                Some(failure) => a href=(format!("/reports/{}", failure.test_report_id))
                    title=(message(failure, letters))
                { (cells(letters)) },
                None => (cells(letters)),
            }
        }
    }
}

/// Returns the message of a failure, or else its result.
fn message(failure: &GridFailure, letter: &str) -> String {
    let result = letter.chars().next().map_or(Outcome::Absent, Outcome::of_letter);
    match clean(&failure.headline).trim() {
        "" => result.label().to_owned(),
        message => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::page::set::Selected;

    fn case(name: &str, outcomes: &str) -> GridCase {
        GridCase {
            test_case_id: name.to_owned(),
            test_case_identifier: name.to_owned(),
            test_case_name: name.to_owned(),
            suites: Vec::new(),
            outcomes: outcomes.to_owned(),
            failures: Vec::new(),
        }
    }

    fn names(cases: &[&GridCase]) -> String {
        cases.iter().map(|case| case.test_case_name.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn tests_that_passed_in_all_executions_share_a_row() {
        let cases = [case("a", "PPF"), case("b", "PPP"), case("c", "-PP"), case("d", "PPP")];
        let (others, green) = folded(&cases);
        assert_eq!((names(&others).as_str(), names(&green).as_str()), ("a c", "b d"));
        let selected = Selected { branch: Some("work"), environment: None };
        let runs = Runs { set: Uuid::nil(), selected: &selected };
        let html = green_row(&green, &runs).into_string();
        assert!(html.contains("2 tests passed in all of these</summary>"), "{html}");
        assert!(html.contains("href=\"/cases/d?testSetId=00000000-"), "{html}");
        assert!(html.contains("&amp;branch=work\""), "the runs are those of the grid: {html}");
        let (others, green) = folded(&cases[..2]);
        assert_eq!((names(&others).as_str(), green.len()), ("a b", 0), "one test has its own row");
    }
}
