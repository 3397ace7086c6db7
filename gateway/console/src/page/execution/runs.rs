//! The runs of the series of an execution: those of the same test set, branch and environment.

use maud::{Markup, html};
use serde::Serialize;

use crate::{
    api::Api,
    chart::glyph_of_run,
    failure::Failure,
    record::{ExecutionEntry, ExecutionStatus, Summary},
    text::{counted, exact_time, number, plain, tooltip_time},
};

/// Number of the latest runs that are read.
const RUNS: u32 = 20;

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
}

/// Reads the latest runs of the series of an execution.
pub(super) async fn read(api: &Api, summary: &Summary) -> Result<Runs, Failure> {
    let execution = &summary.execution;
    let path = format!(
        "/api/projects/{}/testsets/{}/executions",
        summary.project_id, execution.test_set_id
    );
    let environment_id = execution.environment_id.as_deref().filter(|id| !id.is_empty());
    let branch = execution.branch.as_deref();
    let series =
        Series { branch, environment_id, status: ExecutionStatus::Completed.name(), limit: RUNS };
    let mut items = api.list::<ExecutionEntry>(&path, &series).await?.items;
    let is_cut = items.len() >= RUNS as usize;
    // Without a branch or an environment, the list has those of each.
    items.retain(|run| {
        run.branch == execution.branch && run.environment_id == execution.environment_id
    });
    Ok(Runs { items, is_cut })
}

/// Links to the runs, the latest last, and says whether this one is the latest. It is not among the runs while it is
/// running, and if it was canceled, archived or is too old.
pub(super) fn strip(execution: &ExecutionEntry, Runs { items: runs, is_cut }: &Runs) -> Markup {
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
                    (older(execution, latest, newer, is_older))
                }
            }
        }
    }
}

/// Says how the latest run is, on the page of an older one.
fn older(
    execution: &ExecutionEntry,
    latest: &ExecutionEntry,
    newer: usize,
    is_least: bool,
) -> Markup {
    let statistic = &latest.statistic;
    html! {
        span {
            @if is_least { "At least " }
            (counted(i64::try_from(newer).unwrap_or(i64::MAX), "newer run"))
            @if let Some(branch) = &execution.branch { " of " bdi { (plain(branch)) } }
            "; in the " a href=(format!("/executions/{}", latest.id)) { "latest" } ", "
            (number(statistic.failures())) " of " (number(statistic.total)) " failed"
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
        strip(&run(id), &Runs { items, is_cut }).into_string()
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
}
