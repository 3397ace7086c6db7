//! `/reports/{testReportId}`: the result of one test, with its steps.

pub(super) mod content;
mod head;
mod neighbour;
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
    execution::path,
    part::below_set,
    review::{self, Announcement, Entry, Scope},
};
use crate::{
    api::{Console, address},
    failure::Failure,
    layout::{Crumb, Page},
    record::{Project, Report, TestCaseRun},
    session::Session,
    text::{clean, short_time},
};

/// Number of runs of the test case that the result is compared with.
const RUNS: u32 = 20;

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/reports/{report}", get(page).post(judge))
        .route("/reports/{report}/next", get(neighbour::next))
        .route("/reports/{report}/previous", get(neighbour::previous))
        .route("/reports/{report}/content", get(content::content))
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
    let (project, instances, runs) = try_join!(
        api.get::<Project>(&project, &()),
        instances(api, report),
        api.list::<TestCaseRun>(&history, &[("limit", RUNS)]),
    )?;
    let instance = match chosen(&instances.items, view) {
        Some(shown) => Some(instance(api, report, &shown.id).await?),
        None => None,
    };
    let attempt = instance.as_ref().map(|instance| instance.attempt(view));

    let here = address(&format!("/reports/{}", report.id), view);
    let body = html! {
        (head::head(report, &runs.items, view))
        (announcement.show())
        (steps::choices(report, &instances.items, instance.as_ref(), view))
        @match (instance.as_ref(), attempt) {
            (Some(instance), Some(attempt)) => (steps::steps(&format!("/reports/{}", report.id), &instance.id, attempt)),
            _ => p.empty { "No instance has finished yet. Its steps appear here." }
        }
        @if report.is_finished() { (review::form(user, &here, Scope::One(report), entry)) }
    };
    let mut trail = below_set(&project, &report.test_set_id, &report.test_set_name);
    trail.push(Crumb(head::list(report, view), short_time(report.request_time)));
    let title = format!("{} · {}", report.result.label(), clean(&report.test_case_name));
    Ok(Page { user, title, trail, refresh: None, body }.into_response())
}
