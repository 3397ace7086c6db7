//! The runs of the series of an execution: those of the same test set, branch and environment.

use maud::{Markup, html};
use serde::Serialize;

use super::comparison;
use crate::{
    api::{Api, List},
    chart::glyph_of_run,
    failure::Failure,
    record::{Difference, ExecutionEntry, ExecutionStatus, Outcome, Summary},
    text::{counted, exact_time, number, plain, tooltip_time},
};

/// Number of the latest runs that are read.
const RUNS: u32 = 20;

/// Maximum number of other results of the latest run that are read.
const DIFFERENCES: u32 = 1000;

/// The query of the runs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Series<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    environment_id: Option<&'a str>,
    status: &'static str,
    limit: u32,
}

/// The latest runs of a series, the latest first.
#[derive(Default)]
pub(super) struct Runs {
    items: Vec<ExecutionEntry>,
    /// Whether there may be older ones.
    is_cut: bool,
    /// The failures of an older run that are fixed.
    fixed: Option<Fixed>,
}

/// How many failures of a run are fixed in the latest one.
struct Fixed {
    count: usize,
    /// Whether there may be more.
    is_least: bool,
}

impl Fixed {
    fn of(differences: &List<Difference>) -> Self {
        let is_fixed =
            |one: &&Difference| one.result.is_failure() && one.other_result == Outcome::Passed;
        let count = differences.items.iter().filter(is_fixed).count();
        Self { count, is_least: differences.next.is_some() }
    }
}

/// Reads the latest runs of the series of an execution.
pub(super) async fn read(api: &Api, summary: &Summary) -> Result<Runs, Failure> {
    let execution = &summary.execution;
    let environment_id = execution.environment_id.as_deref().filter(|id| !id.is_empty());
    let mut items =
        latest(api, summary, (execution.branch.as_deref(), environment_id), RUNS).await?;
    let is_cut = items.len() >= RUNS as usize;
    // Without a branch or an environment, the list has those of each.
    items.retain(|run| {
        run.branch == execution.branch && run.environment_id == execution.environment_id
    });
    let fixed = fixed(api, execution, items.first()).await?;
    Ok(Runs { items, is_cut, fixed })
}

/// Lists the latest ended runs of the test set of an execution on a branch and in an environment, or on each and in
/// each.
pub(super) async fn latest(
    api: &Api,
    summary: &Summary,
    (branch, environment_id): (Option<&str>, Option<&str>),
    limit: u32,
) -> Result<Vec<ExecutionEntry>, Failure> {
    let set = &summary.execution.test_set_id;
    let path = format!("/api/projects/{}/testsets/{set}/executions", summary.project_id);
    let status = ExecutionStatus::Completed.name();
    let series = Series { branch, environment_id, status, limit };
    Ok(api.list::<ExecutionEntry>(&path, &series).await?.items)
}

/// Returns how many failures of an ended execution are fixed in the latest run, if that is a newer one.
async fn fixed(
    api: &Api,
    execution: &ExecutionEntry,
    latest: Option<&ExecutionEntry>,
) -> Result<Option<Fixed>, Failure> {
    let latest = latest.filter(|latest| latest.id > execution.id && !execution.is_running());
    let Some(latest) = latest.filter(|_| execution.statistic.failures() > 0) else {
        return Ok(None);
    };
    match comparison::read(api, (&execution.id, &latest.id), None, DIFFERENCES).await {
        // It has been deleted meanwhile.
        Err(failure) if failure.is_not_found() => Ok(None),
        differences => Ok(Some(Fixed::of(&differences?))),
    }
}

/// Links to the runs, the latest last, and says whether this one is the latest. It is not among the runs while it is
/// running, and if it was canceled, archived or is too old.
pub(super) fn strip(execution: &ExecutionEntry, all: &Runs) -> Markup {
    let Runs { items: runs, is_cut, fixed } = all;
    // Later executions have greater ids.
    let newer = runs.iter().take_while(|run| run.id > execution.id).count();
    let is_listed = runs.get(newer).is_some_and(|run| run.id == execution.id);
    let before = runs.get(newer + usize::from(is_listed));
    // There may be others between this run and those of the list.
    let is_older = *is_cut && newer == runs.len();
    let after = newer.checked_sub(1).and_then(|at| runs.get(at)).filter(|_| !is_older);
    let link = |run: &ExecutionEntry| format!("/executions/{}", run.id);
    html! {
        @if runs.len() > usize::from(is_listed) {
            nav.runs aria-label="Runs of this series" {
                @if let Some(run) = before { a href=(link(run)) { "‹ Previous" } }
                ol { @for run in runs.iter().rev() {
                    li {
                        a href=(link(run)) title=(tooltip_time(run.request_time))
                            data-time=(exact_time(run.request_time))
                            aria-current=[(run.id == execution.id).then_some("page")]
                        { (glyph_of_run(run.result)) }
                    }
                } }
                @if let Some(run) = after { a href=(link(run)) { "Next ›" } }
                @if let Some(latest) = runs.first().filter(|_| newer > 0) {
                    (older(execution, latest, (newer, is_older), fixed.as_ref()))
                }
            }
        }
    }
}

/// Says how the latest run is, on the page of an older one.
fn older(
    execution: &ExecutionEntry,
    latest: &ExecutionEntry,
    (newer, is_least): (usize, bool),
    fixed: Option<&Fixed>,
) -> Markup {
    let statistic = &latest.statistic;
    let failures = execution.statistic.failures();
    html! {
        span {
            @if is_least { "At least " }
            (counted(i64::try_from(newer).unwrap_or(i64::MAX), "newer run"))
            @if let Some(branch) = &execution.branch { " of " bdi { (plain(branch)) } }
            "; in the " a href=(format!("/executions/{}", latest.id)) { "latest" } ", "
            (number(statistic.failures())) " of " (number(statistic.total)) " failed"
            @if let Some(fixed) = fixed { ", and " (became(failures, fixed)) " there" }
            ". " a href=(comparison::address_of(&execution.id, &latest.id)) { "Compare" }
        }
    }
}

/// Says how many failures of a run are fixed.
fn became(failures: i64, Fixed { count, is_least }: &Fixed) -> String {
    let count = i64::try_from(*count).unwrap_or(i64::MAX);
    let is_least = *is_least && count < failures;
    match (failures, count) {
        (1, 1) => "this failure is fixed".to_owned(),
        (1, 0) if !is_least => "this failure is not fixed".to_owned(),
        _ => {
            let least = if is_least { "at least " } else { "" };
            let verb = if count == 1 { "is" } else { "are" };
            format!(
                "{least}{} of these {} {verb} fixed",
                number(count),
                counted(failures, "failure")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: u32) -> ExecutionEntry {
        serde_json::from_value(serde_json::json!({
            "Id": format!("{id:04}"), "TestSetId": "s", "TestSetName": "Nightly", "RequestUser": "Ada",
            "RequestTime": "2026-03-01T00:00:00Z", "Tags": "", "Result": "Passed", "Branch": "main",
            "Status": "Completed", "DurationInSec": 1,
            "Statistic": {
                "TestCasesTotal": 9, "TestCasesPassed": 7, "TestCasesFailed": 2, "TestCasesWithError": 0,
                "TestCasesAborted": 0, "TestCasesCanceled": 0, "TestCasesPending": 0,
            },
        }))
        .unwrap()
    }

    /// Shows the strip of an execution with the runs of these ids.
    fn shown(id: u32, runs: impl IntoIterator<Item = u32>, is_cut: bool) -> String {
        let items = runs.into_iter().map(run).collect();
        strip(&run(id), &Runs { items, is_cut, fixed: None }).into_string()
    }

    #[test]
    fn the_latest_run_says_nothing_of_newer_ones_while_it_is_running() {
        let html = shown(3, [2, 1], false);
        assert!(!html.contains("newer") && !html.contains("Next"), "{html}");
        assert!(html.contains("<a href=\"/executions/0002\">‹ Previous"), "{html}");
        assert_eq!(shown(1, [1], false), "", "it is the only one");
    }

    #[test]
    fn newer_runs_are_counted_whether_the_run_is_listed_or_was_canceled() {
        for runs in [&[4, 3, 2, 1][..], &[4, 3, 1][..]] {
            let html = shown(2, runs.iter().copied(), false);
            assert!(html.contains(">2 newer runs of <bdi>main</bdi>; in the "), "{html}");
            assert!(html.contains("2 of 9 failed"), "{html}");
            for (name, id) in [("‹ Previous", "0001"), ("Next ›", "0003")] {
                assert!(html.contains(&format!("<a href=\"/executions/{id}\">{name}")), "{html}");
            }
        }
    }

    #[test]
    fn a_run_before_those_of_the_list_has_at_least_as_many_newer_ones() {
        let html = shown(1, (10..30).rev(), true);
        assert!(html.contains(">At least 20 newer runs of "), "{html}");
        assert!(!html.contains("Previous") && !html.contains("Next"), "{html}");
    }

    #[test]
    fn an_older_run_says_how_many_of_its_failures_are_fixed() {
        let difference = |result: &str, other: &str| -> Difference {
            serde_json::from_value(serde_json::json!({
                "TestCaseId": "7", "TestCaseIdentifier": "pays", "TestCaseName": "pays",
                "Result": result, "OtherResult": other,
            }))
            .unwrap()
        };
        let pairs = [
            ("Failed", "Passed"),
            ("Error", "Passed"),
            ("Failed", "NotExecuted"),
            ("Passed", "Failed"),
            ("Canceled", "Passed"),
        ];
        let items = pairs.map(|(result, other)| difference(result, other)).into();
        let fixed = Fixed::of(&List { items, next: None });
        assert_eq!((fixed.count, fixed.is_least), (2, false));
        let html = strip(
            &run(2),
            &Runs { items: vec![run(3), run(2)], is_cut: false, fixed: Some(fixed) },
        )
        .into_string();
        assert!(html.contains("failed, and 2 of these 2 failures are fixed there. <a"), "{html}");
        assert!(html.contains("href=\"/executions/0002/comparison?with=0003\""), "{html}");
        let of_one = |count| became(1, &Fixed { count, is_least: false });
        assert_eq!([of_one(0), of_one(1)], ["this failure is not fixed", "this failure is fixed"]);
        let many = became(47, &Fixed { count: 44, is_least: true });
        assert_eq!(many, "at least 44 of these 47 failures are fixed");
    }
}
