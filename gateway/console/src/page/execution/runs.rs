//! The runs of the series of an execution: those of the same test set, branch and environment.

use maud::{Markup, html};
use serde::Serialize;

use crate::{
    api::Api,
    chart::glyph,
    failure::Failure,
    record::{ExecutionEntry, ExecutionStatus, Summary},
    text::{counted, number, plain},
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

/// Reads the latest runs of the series of an execution, the latest first.
pub(super) async fn read(api: &Api, summary: &Summary) -> Result<Vec<ExecutionEntry>, Failure> {
    let execution = &summary.execution;
    let path = format!(
        "/api/projects/{}/testsets/{}/executions",
        summary.project_id, execution.test_set_id
    );
    let environment_id = execution.environment_id.as_deref().filter(|id| !id.is_empty());
    let branch = execution.branch.as_deref();
    let series =
        Series { branch, environment_id, status: ExecutionStatus::Completed.name(), limit: RUNS };
    let runs = api.list::<ExecutionEntry>(&path, &series).await?.items;
    // Without a branch or an environment, the list has those of each.
    let is_of_series = |run: &ExecutionEntry| {
        run.branch == execution.branch && run.environment_id == execution.environment_id
    };
    Ok(runs.into_iter().filter(is_of_series).collect())
}

/// Links to the runs, the latest last, and says whether this one is the latest.
pub(super) fn strip(execution: &ExecutionEntry, runs: &[ExecutionEntry]) -> Markup {
    let at = runs.iter().position(|run| run.id == execution.id);
    let newer = at.unwrap_or(runs.len());
    let link = |run: &ExecutionEntry| format!("/executions/{}", run.id);
    let before = at.and_then(|at| runs.get(at + 1));
    let after = newer.checked_sub(1).and_then(|at| runs.get(at)).filter(|_| at.is_some());
    html! {
        @if runs.len() > usize::from(at.is_some()) {
            nav.runs aria-label="Runs of this series" {
                @if let Some(run) = before { a href=(link(run)) { "‹ Previous" } }
                ol { @for run in runs.iter().rev() {
                    li {
                        a href=(link(run)) title=(run.request_time.format("%-d %b %Y, %H:%M UTC"))
                            aria-current=[(run.id == execution.id).then_some("page")]
                        { (glyph(run.result)) }
                    }
                } }
                @if let Some(run) = after { a href=(link(run)) { "Next ›" } }
                @if let Some(latest) = runs.first().filter(|_| newer > 0) {
                    (older(execution, latest, at))
                }
            }
        }
    }
}

/// Says how the latest run is, on the page of an older one.
fn older(execution: &ExecutionEntry, latest: &ExecutionEntry, at: Option<usize>) -> Markup {
    let statistic = &latest.statistic;
    html! {
        span {
            @match at.and_then(|at| i64::try_from(at).ok()) {
                Some(newer) => { (counted(newer, "newer run")) }
                None => { "More than " (RUNS) " newer runs" }
            }
            @if let Some(branch) = &execution.branch { " of " bdi { (plain(branch)) } }
            "; in the " a href=(format!("/executions/{}", latest.id)) { "latest" } ", "
            (number(statistic.failures())) " of " (number(statistic.total)) " failed"
        }
    }
}
