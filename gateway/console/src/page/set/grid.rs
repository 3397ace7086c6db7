//! The grid of a test set: a row for each test, those first that fail now, and a column for each execution,
//! headed by its day, commit and number of failures. Each failure leads to its report.

use chrono::Datelike as _;
use maud::{Markup, html};

use super::Filter;
use crate::{
    api::address,
    chart::{cells, failures, glyph},
    record::{Grid, GridCase, GridExecution, GridFailure, Outcome},
    text::{clean, plain},
};

/// Number of characters of a commit.
const COMMIT: usize = 7;

/// The results of tests that failed, or of all tests. `page` is the path of the page.
pub(super) fn table(grid: &Grid, page: &str, filter: &Filter) -> Markup {
    let of = |all: Option<&str>| {
        address(page, &Filter { all: all.map(str::to_owned), ..filter.clone() })
    };
    let current = |is_all: bool| (filter.all.is_some() == is_all).then_some("page");
    html! {
        h2 { "Tests" }
        nav.tabs.small-tabs aria-label="Tests" {
            a href=(of(None)) aria-current=[current(false)] { "Failed" }
            a href=(of(Some("tests"))) aria-current=[current(true)] { "All" }
        }
        @if grid.cases.is_empty() { p.empty { "No test failed in these executions." } }
        div.grid tabindex="0" role="region" aria-label="Results of the tests in the latest executions" {
            table {
                thead { tr {
                    th scope="col" { "Test" }
                    td {
                        (days(&grid.executions))
                        (failures(grid.executions.iter().map(|execution| execution.failures)))
                        ol.columns { @for execution in &grid.executions { li { (column(execution)) } } }
                    }
                } }
                tbody { @for case in &grid.cases { (row(case, &grid.executions)) } }
            }
        }
    }
}

/// The days of executions in UTC, each at its first column. Readers without eyes have them in the columns.
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
                span {
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
        a href=(format!("/executions/{}", execution.id)) title=(title(execution)) {
            span.commit { (plain(&short)) }
            (glyph(execution.result))
        }
    }
}

/// Returns what is known about an execution.
fn title(execution: &GridExecution) -> String {
    let time = execution.request_time.format("%-d %b %Y, %H:%M UTC").to_string();
    let known = [
        Some(time.as_str()),
        execution.branch.as_deref(),
        execution.commit.as_deref(),
        execution.environment_name.as_deref(),
    ];
    let known = known.into_iter().flatten().filter(|text| !text.is_empty());
    clean(&known.collect::<Vec<_>>().join(", ")).into_owned()
}

fn row(case: &GridCase, executions: &[GridExecution]) -> Markup {
    html! {
        tr.row {
            th scope="row" {
                @if !case.suites.is_empty() {
                    span.suites { bdi { (plain(&case.suites.join(" \u{203a} "))) } }
                }
                a href=(format!("/cases/{}", case.test_case_id))
                    title=(clean(&case.test_case_identifier))
                { bdi { (plain(&case.test_case_name)) } }
            }
            td { div.outcomes { (outcomes(case, executions)) } }
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
