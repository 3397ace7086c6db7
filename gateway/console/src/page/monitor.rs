//! `/projects/{projectId}/monitors` and each of them: rules that mute or skip test cases while they are flaky or
//! slow, and what they have done or would have done.

mod action;
mod form;

use axum::{
    Form, Router,
    extract::{Path, Query},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use futures::try_join;
use http::Method;
use maud::{Markup, html};
use uuid::Uuid;

use self::form::{Entry, Filled};
use super::{announcement::Announcement, paged::Paged, part::below_project};
use crate::{
    api::Console,
    failure::Failure,
    layout::{Crumb, Page},
    record::{AlarmAction, Monitor, MonitorMeasure, Permission, Project, TakenAction},
    session::Session,
    text::{number, plain, short_time},
};

/// Number of monitors, and of their actions, on a page.
const MONITORS: u32 = 50;
const ACTIONS: u32 = 50;

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/projects/{project}/monitors", get(list).post(create))
        .route("/projects/{project}/monitors/{monitor}", get(page).post(save))
        .route("/projects/{project}/monitors/{monitor}/delete", post(delete))
}

async fn list(
    session: Session,
    Path(id): Path<Uuid>,
    Query(query): Query<Paged<()>>,
    Query(announcement): Query<Announcement>,
    Query(entry): Query<Entry>,
) -> Result<Response, Failure> {
    let filled = if entry.is_tried() && session.user.may(Permission::Accept) {
        Filled::tried(&session.api, id, entry).await?
    } else {
        Filled::with(Entry::new())
    };
    show_all(&session, id, &query, &announcement, &filled).await
}

/// Creates a monitor. One that is refused stays in the form.
async fn create(
    session: Session,
    Path(id): Path<Uuid>,
    Form(entry): Form<Entry>,
) -> Result<Response, Failure> {
    let path = format!("/api/projects/{id}/monitors");
    let problem = match session.api.send::<Monitor>(Method::POST, &path, &entry.input(None)).await {
        Ok(monitor) => {
            let page = format!("/projects/{id}/monitors/{}?saved=yes", monitor.id);
            return Ok(Redirect::to(&page).into_response());
        }
        Err(failure) => failure.of_conflict().or_else(Failure::of_input)?,
    };
    let (query, announcement) = (Paged::default(), Announcement::default());
    let filled = Filled::refused(entry, Some(problem));
    show_all(&session, id, &query, &announcement, &filled).await
}

async fn show_all(
    Session { api, user }: &Session,
    id: Uuid,
    query: &Paged<()>,
    announcement: &Announcement,
    filled: &Filled,
) -> Result<Response, Failure> {
    let project = format!("/api/projects/{id}");
    let (monitors, listed) = (format!("{project}/monitors"), query.listed(MONITORS));
    let (project, monitors) =
        try_join!(api.get::<Project>(&project, &()), api.list::<Monitor>(&monitors, &listed))?;
    let path = format!("/projects/{id}/monitors");
    let body = html! {
        div.head { h1 { "Monitors" } }
        (announcement.show())
        p.lead {
            "A monitor mutes or skips tests while they are flaky or slow, and lifts that when they have recovered. \
             While it runs dry, it only records what it would have done."
        }
        @if monitors.items.is_empty() { (query.nothing("This project has no monitors.")) }
        ul.rows.spaced { @for monitor in &monitors.items { (row(&path, monitor)) } }
        (query.pager(&path, monitors.next.as_deref()))
        @if user.may(Permission::Accept) {
            h2 { "New monitor" }
            (filled.show(&path, None))
        }
    };
    let title = format!("Monitors · {}", project.name);
    let trail = below_project(&project);
    Ok((filled.status(), Page { user, title, trail, body }).into_response())
}

fn row(path: &str, monitor: &Monitor) -> Markup {
    html! {
        li.row.past {
            span.mark {}
            div.what {
                a href=(format!("{path}/{}", monitor.id)) { bdi { (plain(&monitor.name)) } }
                p.small { (plain(&monitor.rule())) }
            }
            span.marks { (state(monitor)) }
        }
    }
}

fn state(monitor: &Monitor) -> Markup {
    html! {
        @if monitor.dry_run { span.badge.none { "Dry run" } }
        @else { span.badge.pass { "On" } }
    }
}

async fn page(
    session: Session,
    Path((project, id)): Path<(Uuid, Uuid)>,
    Query(query): Query<Paged<()>>,
    Query(announcement): Query<Announcement>,
    Query(entry): Query<Entry>,
) -> Result<Response, Failure> {
    let filled = if entry.is_tried() && session.user.may(Permission::Accept) {
        Some(Filled::tried(&session.api, project, entry).await?)
    } else {
        None
    };
    show(&session, (project, id), &query, &announcement, filled).await
}

/// Changes a monitor, unless somebody else has changed it since. A change that is refused stays in the form, with the
/// version on which it is based.
async fn save(
    session: Session,
    Path((project, id)): Path<(Uuid, Uuid)>,
    Form(entry): Form<Entry>,
) -> Result<Response, Failure> {
    let path = format!("/api/projects/{project}/monitors/{id}");
    let input = entry.input(entry.base());
    let problem = match session.api.send::<Monitor>(Method::PUT, &path, &input).await {
        Ok(_) => {
            let page = format!("/projects/{project}/monitors/{id}?saved=yes");
            return Ok(Redirect::to(&page).into_response());
        }
        Err(failure) if failure.is_stale() => None,
        Err(failure) => Some(failure.of_conflict().or_else(Failure::of_input)?),
    };
    let (query, announcement) = (Paged::default(), Announcement::default());
    let filled = Filled::refused(entry, problem);
    show(&session, (project, id), &query, &announcement, Some(filled)).await
}

async fn show(
    Session { api, user }: &Session,
    (project, id): (Uuid, Uuid),
    query: &Paged<()>,
    announcement: &Announcement,
    filled: Option<Filled>,
) -> Result<Response, Failure> {
    let path = format!("/api/projects/{project}");
    let monitor = format!("{path}/monitors/{id}");
    let (actions, listed) = (format!("{monitor}/actions"), query.listed(ACTIONS));
    let (of, monitor, actions) = try_join!(
        api.get::<Project>(&path, &()),
        api.get::<Monitor>(&monitor, &()),
        api.list::<TakenAction>(&actions, &listed),
    )?;
    let page = format!("/projects/{project}/monitors/{id}");
    let filled = filled.unwrap_or_else(|| Filled::with(Entry::of(&monitor)));
    let body = html! {
        div.head { h1 { bdi { (plain(&monitor.name)) } } (state(&monitor)) }
        (announcement.show())
        p.lead { (plain(&monitor.rule())) }
        p.facts {
            span.fact { "by " bdi { (plain(&monitor.created_by)) } }
            span.fact { (short_time(monitor.created_at)) }
        }
        (action::done(&monitor, &actions, query))
        (query.pager(&page, actions.next.as_deref()))
        @if user.may(Permission::Accept) {
            h2 { "Change" }
            (filled.show(&page, Some(&monitor.data_version)))
            details {
                summary { "Delete this monitor" }
                p.hint { "States of tests that it has set stay until their end." }
                form method="post" action=(format!("{page}/delete")) { button { "Delete" } }
            }
        }
    };
    let mut trail = below_project(&of);
    trail.push(Crumb(format!("/projects/{project}/monitors"), html! { "Monitors" }));
    let title = monitor.name.clone();
    Ok((filled.status(), Page { user, title, trail, body }).into_response())
}

async fn delete(
    Session { api, .. }: Session,
    Path((project, id)): Path<(Uuid, Uuid)>,
) -> Result<Redirect, Failure> {
    api.delete_if_any(&format!("/api/projects/{project}/monitors/{id}")).await?;
    Ok(Redirect::to(&format!("/projects/{project}/monitors?deleted=yes")))
}

impl Monitor {
    /// Returns its rule as a sentence.
    fn rule(&self) -> String {
        let action = match self.action {
            AlarmAction::Skip => "Skips",
            AlarmAction::Notify => "Notifies about",
            _ => "Mutes",
        };
        let threshold = form::shown(self.threshold);
        let runs = number(self.runs);
        let reached = match self.measure {
            MonitorMeasure::PassOnRetry => {
                format!("that passed only on a retry in {threshold} of {runs} runs")
            }
            MonitorMeasure::FailureRate => format!("that failed in {threshold} % of {runs} runs"),
            MonitorMeasure::Duration => {
                format!("with a median duration of {threshold} s in {runs} runs")
            }
            _ => format!("that recovered {threshold} times in {runs} runs"),
        };
        let branch = match self.branch.as_str() {
            "" => "the default branch".to_owned(),
            branch => branch.to_owned(),
        };
        let recovered = number(self.recover_after);
        format!("{action} tests {reached} of {branch}, until {recovered} in a row pass.")
    }
}
