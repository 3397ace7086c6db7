//! `/projects/{projectId}/incidents` and each of them: failures of many tests that are evidence about their
//! environment.

use axum::{
    Router,
    extract::{Path, Query},
    response::IntoResponse,
    routing::get,
};
use futures::try_join;
use maud::{Markup, html};
use uuid::Uuid;

use super::{
    paged::{Paged, shown_of},
    part::below_project,
};
use crate::{
    api::Console,
    failure::Failure,
    layout::{Crumb, Page},
    record::{Incident, IncidentEntry, IncidentKind, Project},
    session::Session,
    text::{ansi, counted, long_time, plain, short_time},
};

/// Number of incidents on a page.
const INCIDENTS: u32 = 50;

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/projects/{project}/incidents", get(list))
        .route("/projects/{project}/incidents/{incident}", get(page))
}

async fn list(
    Session { api, user }: Session,
    Path(id): Path<Uuid>,
    Query(query): Query<Paged<()>>,
) -> Result<impl IntoResponse, Failure> {
    let (path, listed) = (format!("/api/projects/{id}"), query.listed(INCIDENTS));
    let incidents = format!("{path}/incidents");
    let (project, incidents) =
        try_join!(api.get::<Project>(&path, &()), api.list::<IncidentEntry>(&incidents, &listed),)?;
    let page = format!("/projects/{id}/incidents");
    let body = html! {
        div.head { h1 { "Incidents" } }
        p.lead {
            "Executions in which nearly all tests failed, and causes in most test sets within half an hour: \
             evidence about the environment rather than about the tests."
        }
        @if incidents.items.is_empty() { (query.nothing("No incident was found.")) }
        ul.rows.spaced { @for incident in &incidents.items { (row(&page, incident)) } }
        (query.pager(&page, incidents.next.as_deref()))
    };
    let title = format!("Incidents · {}", project.name);
    let trail = below_project(&project);
    Ok(Page { user: &user, title, trail, body }.into_response())
}

async fn page(
    Session { api, user }: Session,
    Path((id, incident)): Path<(Uuid, Uuid)>,
) -> Result<impl IntoResponse, Failure> {
    let path = format!("/api/projects/{id}");
    let incident = format!("{path}/incidents/{incident}");
    let (project, incident) =
        try_join!(api.get::<Project>(&path, &()), api.get::<Incident>(&incident, &()))?;
    let entry = &incident.entry;
    let body = html! {
        div.head { h1 { (title(entry)) } (state(entry)) }
        p.facts {
            span.fact { "since " (long_time(entry.begun_at)) }
            span.fact { "last seen " (long_time(entry.last_seen_at)) }
            @if let Some(time) = entry.ended_at { span.fact { "ended " (long_time(time)) } }
            @if let Some(execution) = &entry.ended_by_execution_id {
                span.fact { a href=(format!("/executions/{execution}")) { "first execution without it" } }
            }
        }
        @if !entry.headline.is_empty() { pre { (ansi(&entry.headline)) } }
        h2 { (affected(entry)) }
        ol.rows { @for execution in &incident.affected {
            li.row.past {
                span.mark {}
                span.what {
                    a href=(format!("/executions/{}", execution.execution_id)) {
                        bdi { (plain(&execution.test_set_name)) } ", " (short_time(execution.request_time))
                    }
                }
            }
        } }
        (shown_of(incident.affected.len(), entry.executions, "execution"))
    };
    let mut trail = below_project(&project);
    trail.push(Crumb(format!("/projects/{id}/incidents"), html! { "Incidents" }));
    Ok(Page { user: &user, title: title(entry).to_owned(), trail, body }.into_response())
}

fn row(page: &str, incident: &IncidentEntry) -> Markup {
    html! {
        li.row.past {
            span.mark {}
            div.what {
                a href=(format!("{page}/{}", incident.id)) {
                    (title(incident)) ", " (short_time(incident.begun_at))
                }
                @if !incident.headline.is_empty() { pre { (ansi(&incident.headline)) } }
                span.facts { span.fact { (affected(incident)) } }
            }
            span.marks { (state(incident)) }
        }
    }
}

fn title(incident: &IncidentEntry) -> &'static str {
    if incident.kind == IncidentKind::Outage { "Outage" } else { "One cause in most test sets" }
}

fn state(incident: &IncidentEntry) -> Markup {
    html! {
        @if incident.ended_at.is_some() { span.badge.none { "Ended" } }
        @else { span.badge.fail { "Open" } }
    }
}

fn affected(incident: &IncidentEntry) -> String {
    let sets = counted(incident.test_sets, "test set");
    format!("{} of {sets}", counted(incident.executions, "execution"))
}
