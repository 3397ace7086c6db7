//! `/projects/{projectId}/knownfailures`: the causes that are muted, until they are ended.

use axum::{
    Router,
    extract::{Path, Query},
    response::{IntoResponse, Redirect},
    routing::{get, post},
};
use futures::try_join;
use maud::{Markup, html};
use serde::Deserialize;
use uuid::Uuid;

use super::{paged::Paged, part::below_project};
use crate::{
    api::Console,
    claims::Claims,
    failure::Failure,
    layout::Page,
    record::{Project, Time},
    session::Session,
    text::{ansi, beginning, clean, plain, short_time},
};

/// Number of known failures on a page.
const KNOWN_FAILURES: u32 = 50;

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/projects/{project}/knownfailures", get(page))
        .route("/projects/{project}/knownfailures/{known}/delete", post(delete))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct KnownFailure {
    id: String,
    headline: String,
    test_case_id: Option<String>,
    ticket: String,
    comment: String,
    muted_until: Time,
    created_by: String,
    last_seen: Option<Time>,
}

async fn page(
    Session { api, user }: Session,
    Path(id): Path<Uuid>,
    Query(query): Query<Paged<()>>,
) -> Result<impl IntoResponse, Failure> {
    let (project, listed) = (format!("/api/projects/{id}"), query.listed(KNOWN_FAILURES));
    let known = format!("{project}/knownfailures");
    let (project, known) =
        try_join!(api.get::<Project>(&project, &()), api.list::<KnownFailure>(&known, &listed),)?;
    let path = format!("/projects/{id}/knownfailures");
    let body = html! {
        div.head { h1 { "Known failures" } }
        p.lead {
            "Failures with these causes are muted until the date: they do not count as new. Review \
             failures of an execution to add some."
        }
        @if known.items.is_empty() { p.empty { "No failure is muted." } }
        ul.rows.spaced { @for one in &known.items { (row(&path, one, &user)) } }
        (query.pager(&path, known.next.as_deref()))
    };
    let title = "Known failures".to_owned();
    let trail = below_project(&project);
    Ok(Page { user: &user, title, trail, refresh: None, body }.into_response())
}

fn row(path: &str, known: &KnownFailure, user: &Claims) -> Markup {
    html! {
        li.row.past {
            span.mark {}
            div.what {
                pre { (ansi(&known.headline)) }
                @if !known.comment.is_empty() { p.small { bdi { (plain(&beginning(&known.comment))) } } }
                span.facts {
                    span.fact { "until " (short_time(known.muted_until)) }
                    span.fact {
                        @match &known.test_case_id {
                            Some(case) => a href=(format!("/cases/{case}")) { "one test" },
                            None => "every test",
                        }
                    }
                    span.fact { "by " bdi { (plain(&known.created_by)) } }
                    @if let Some(time) = known.last_seen { span.fact { "last seen " (short_time(time)) } }
                }
            }
            span.marks {
                @if !known.ticket.is_empty() { span.badge.none { bdi { (plain(&known.ticket)) } } }
            }
            @if user.may("Accept") {
                form.time method="post" action=(format!("{path}/{}/delete", known.id)) {
                    button aria-label=(format!("End: {}", clean(&known.headline))) { "End" }
                }
            }
        }
    }
}

/// Ends a known failure: its failures in later executions count again.
async fn delete(
    Session { api, .. }: Session,
    Path((project, known)): Path<(Uuid, Uuid)>,
) -> Result<Redirect, Failure> {
    api.delete(&format!("/api/projects/{project}/knownfailures/{known}")).await?;
    Ok(Redirect::to(&format!("/projects/{project}/knownfailures")))
}
