//! `/reports/{testReportId}`: the result of one test, with its steps.

pub(super) mod content;
mod head;
mod log;
pub(super) mod steps;
mod view;

use axum::{
    Form, Router,
    extract::{Path, Query},
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use futures::try_join;
use maud::html;
use uuid::Uuid;

use self::view::{View, chosen, instance, instances, report};
use super::{
    execution::{path, position},
    part::below_set,
    review::{self, Announcement, Entry, Scope, undo_last},
};
use crate::{
    api::{Console, address},
    failure::Failure,
    layout::{Crumb, Page},
    record::{Outcome, Project, Report, TestCaseRun},
    session::Session,
    text::{clean, short_time},
};

/// Number of runs of the test case that the result is compared with.
const RUNS: &str = "20";

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/reports/{report}", get(page).post(judge))
        .route("/reports/{report}/content", get(content::content))
        .route("/reports/{report}/log", get(log::page))
}

async fn page(
    session: Session,
    Path(id): Path<Uuid>,
    Query(view): Query<View>,
    Query(announcement): Query<Announcement>,
) -> Result<Response, Failure> {
    let report = report(&session.api, id).await?;
    show(&session, &report, &view, &announcement, &Entry::of(&report)).await
}

/// Judges the test report, and shows it again.
async fn judge(
    session: Session,
    Path(id): Path<Uuid>,
    Query(view): Query<View>,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Result<Response, Failure> {
    let report = report(&session.api, id).await?;
    let execution = path(&report.execution_id);
    match Entry::read(pairs).send(&session.api, &execution, Some(&report)).await? {
        Ok(reviewed) => {
            let here = address(&format!("/reports/{id}"), &view);
            Ok(Redirect::to(&reviewed.announced_on(&here)).into_response())
        }
        Err(entry) => {
            let report = self::report(&session.api, id).await?;
            let page = show(&session, &report, &view, &Announcement::default(), &entry).await?;
            Ok((entry.refusal(), page).into_response())
        }
    }
}

async fn show(
    Session { api, user }: &Session,
    report: &Report,
    view: &View,
    announcement: &Announcement,
    entry: &Entry,
) -> Result<Response, Failure> {
    let history =
        format!("/api/projects/{}/testcases/{}/history", report.project_id, report.test_case_id);
    let project = format!("/api/projects/{}", report.project_id);
    let list = head::list_of(report, view);
    // The runs of its series, with which results are compared.
    let series = [
        ("limit", Some(RUNS)),
        ("branch", report.branch.as_deref()),
        ("testSetId", Some(report.test_set_id.as_str())),
        ("environmentId", report.environment_id.as_deref()),
    ];
    let series = series.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let series: Vec<_> = series.collect();
    let (project, instances, runs, position) = try_join!(
        api.get::<Project>(&project, &()),
        instances(api, report, view),
        api.list::<TestCaseRun>(&history, &series),
        position(api, parsed(&report.execution_id)?, parsed(&report.id)?, &list),
    )?;
    let runs = of_series(runs.items, report);
    let instance = match chosen(&instances.items, view) {
        Some(shown) => Some(instance(api, report, &shown.id).await?),
        None => None,
    };
    let attempt = instance.as_ref().map(|instance| instance.attempt(view));
    let log = match &instance {
        None if !report.is_finished() => Some(log::read(api, report).await?),
        _ => None,
    };

    let here = address(&format!("/reports/{}", report.id), view);
    let body = html! {
        (head::head(report, &runs, &list, &position, &undo_last(report, user, &here), &project))
        (announcement.show(&report.execution_id, &here))
        (steps::choices(report, &instances, instance.as_ref(), view))
        @match (instance.as_ref(), attempt) {
            (Some(instance), Some(attempt)) => {
                @let page = format!("/reports/{}", report.id);
                @let all = address(&page, &View { step: None, ..view.clone() });
                (steps::steps(&page, &instance.id, attempt, &all, view.step.as_deref()))
            }
            _ => p.empty { (without_instance(report)) }
        }
        @match &log {
            Some(log) => (log::section(report, log)),
            None if !report.is_finished() => {
                p { a.button href=(format!("/reports/{}/log", report.id)) { "Output of the test" } }
            }
            None => {}
        }
        @if report.is_finished() { (review::form(user, &here, Scope::One(report), entry)) }
    };
    let mut trail = below_set(&project, &report.test_set_id, &report.test_set_name);
    trail.push(Crumb(head::list(report, &list), short_time(report.request_time)));
    let title = format!("{} · {}", report.result.label(), clean(&report.test_case_name));
    Ok(Page { user, title, trail, body }.into_response())
}

/// Says why a test has no instance.
fn without_instance(report: &Report) -> &'static str {
    match report.result {
        _ if !report.is_finished() => "No instance has finished yet. Its steps appear here.",
        Outcome::Passed | Outcome::Failed => {
            "The steps of this test are not stored any more. They are removed after the retention \
             of the project."
        }
        _ => {
            "No steps of this test are stored: it did not run, or they were removed after the \
             retention of the project."
        }
    }
}

/// Returns those of the runs of a test that are in the series of a report. Without a branch or an environment, the
/// list has those of each.
fn of_series(mut runs: Vec<TestCaseRun>, report: &Report) -> Vec<TestCaseRun> {
    let is_same = |one: Option<&str>, other: Option<&str>| {
        one.unwrap_or_default() == other.unwrap_or_default()
    };
    runs.retain(|run| {
        is_same(run.branch.as_deref(), report.branch.as_deref())
            && is_same(run.environment_id.as_deref(), report.environment_id.as_deref())
    });
    runs
}

/// Reads an id of a record.
fn parsed(id: &str) -> Result<Uuid, Failure> {
    id.parse().map_err(|_| Failure::internal())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ReportStatus;

    #[test]
    fn a_test_without_instances_has_none_yet_or_none_any_more() {
        let said =
            |status, result| without_instance(&Report { result, status, ..Report::example() });
        let running = said(ReportStatus::Running, Outcome::NotExecuted);
        assert!(running.starts_with("No instance has finished yet."), "{running}");
        for status in [ReportStatus::InReview, ReportStatus::Accepted] {
            let failed = said(status, Outcome::Failed);
            assert!(failed.contains("not stored any more"), "{failed}");
        }
        // An engine may have failed before the test ran.
        let failed = said(ReportStatus::EngineExecutionFailure, Outcome::Error);
        assert!(failed.contains("it did not run, or"), "{failed}");
    }

    #[test]
    fn runs_of_a_branch_or_an_environment_are_of_another_series_than_those_without() {
        let run = |id: &str, branch: Option<&str>, environment: &str| -> TestCaseRun {
            serde_json::from_value(serde_json::json!({
                "Id": id, "ExecutionId": "e", "RequestTime": "2026-03-01T00:00:00Z",
                "Result": "Passed", "Status": "InReview", "TotalDurationInSec": 1,
                "FlakinessScore": 0, "IsFlaky": false, "TestSetName": "Nightly", "Branch": branch,
                "EnvironmentId": environment,
            }))
            .unwrap()
        };
        let runs = vec![run("1", None, ""), run("2", Some("main"), ""), run("3", None, "firefox")];
        let runs = of_series(runs, &Report::example());
        assert_eq!(runs.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["1"]);
    }
}
