//! `/reports/{testReportId}`: the result of one test, with its steps.

mod content;
mod head;
mod neighbour;
mod steps;

use axum::{
    Form, Router,
    extract::{Path, Query},
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use futures::try_join;
use http::StatusCode;
use maud::html;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    part::below_set,
    review::{self, Announcement, Entry, Scope},
    unless_empty,
};
use crate::{
    Console,
    api::{Api, Attempt, Instance, InstanceEntry, List, Project, Report, TestCaseRun, address},
    failure::Failure,
    layout::{Crumb, Page},
    session::Session,
    text::{clean, short_time},
};

/// Number of instances that can be chosen on the page.
const INSTANCES: u32 = 100;

/// Number of runs of the test case that the result is compared with.
const RUNS: u32 = 20;

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/reports/{report}", get(page).post(judge))
        .route("/reports/{report}/next", get(neighbour::next))
        .route("/reports/{report}/previous", get(neighbour::previous))
        .route("/reports/{report}/content", get(content::content))
}

/// The part of the result to show, and the list that has led here.
#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(default)]
struct View {
    /// Id of an instance; by default the first one that failed.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    instance: Option<String>,
    /// Number of an attempt; by default the last one.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    attempt: Option<String>,
    /// Query of the list of results.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    from: Option<String>,
}

async fn page(
    session: Session,
    Path(id): Path<Uuid>,
    Query(view): Query<View>,
    Query(announcement): Query<Announcement>,
) -> Result<Response, Failure> {
    let report = report(&session.api, id).await?;
    show(&session, &report, &view, &announcement, &Entry::default()).await
}

/// Judges the test report, and shows it again.
async fn judge(
    session: Session,
    Path(id): Path<Uuid>,
    Query(view): Query<View>,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Result<Response, Failure> {
    let report = report(&session.api, id).await?;
    let execution = format!("/api/projects/0/executions/{}", report.execution_id);
    match Entry::read(pairs).send(&session.api, &execution).await? {
        Ok(reviewed) => {
            let here = address(&format!("/reports/{id}"), &view);
            Ok(Redirect::to(&reviewed.announced_on(&here)).into_response())
        }
        Err(entry) => {
            let page = show(&session, &report, &view, &Announcement::default(), &entry).await?;
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
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
            (Some(instance), Some(attempt)) => (steps::steps(report, instance, attempt)),
            _ => p.empty { "No instance has finished yet. Its steps appear here." }
        }
        @if report.is_finished() { (review::form(user, &here, Scope::One(&report.id), entry)) }
    };
    let mut trail = below_set(&project, &report.test_set_id, &report.test_set_name);
    trail.push(Crumb(head::list(report, view), short_time(report.request_time)));
    let title = format!("{} · {}", report.result.label(), clean(&report.test_case_name));
    Ok(Page { user, title, trail, refresh: None, body }.into_response())
}

async fn report(api: &Api, id: Uuid) -> Result<Report, Failure> {
    api.get(&format!("/api/projects/0/testcases/0/testplans/0/testreports/{id}"), &()).await
}

async fn instances(api: &Api, report: &Report) -> Result<List<InstanceEntry>, Failure> {
    api.list(&report.instances(), &[("limit", INSTANCES)]).await
}

async fn instance(api: &Api, report: &Report, id: &str) -> Result<Instance, Failure> {
    api.get(&format!("{}/{id}", report.instances()), &()).await
}

/// Returns the instance to show.
fn chosen<'a>(instances: &'a [InstanceEntry], view: &View) -> Option<&'a InstanceEntry> {
    let asked = view.instance.as_deref();
    let asked = asked.and_then(|id| instances.iter().find(|instance| instance.id == id));
    let failed = || instances.iter().find(|instance| instance.result.is_failure());
    asked.or_else(failed).or_else(|| instances.first())
}

impl Instance {
    /// Returns the attempt to show.
    fn attempt(&self, view: &View) -> &Attempt {
        let number = view.attempt.as_deref().and_then(|number| number.parse().ok());
        let asked = number
            .and_then(|number: i64| self.attempts.iter().find(|attempt| attempt.number == number));
        asked.unwrap_or(&self.last)
    }
}
