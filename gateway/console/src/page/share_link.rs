//! `/executions/{executionId}/shares`: the share links of an execution.

use axum::{
    Form, Router,
    extract::Path,
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use futures::try_join;
use http::Method;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    execution::path,
    paged::{cut, unless_empty},
    part::below_set,
    upload::copyable,
};
use crate::{
    api::Console,
    claims::Claims,
    failure::Failure,
    layout::{Crumb, Page},
    record::{NewShareLink, Permission, Project, ShareLink, Summary},
    session::Session,
    text::{plain, short_time},
};

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/executions/{execution}/shares", get(page).post(create))
        .route("/executions/{execution}/shares/{share}/delete", post(delete))
}

/// The fields of the form.
#[derive(Deserialize)]
struct Fields {
    #[serde(default, deserialize_with = "unless_empty")]
    expires: Option<String>,
}

/// The request to the interface.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ShareLinkInput {
    expires_at: Option<String>,
}

async fn page(session: Session, Path(id): Path<Uuid>) -> Result<Response, Failure> {
    show(&session, id, None).await.map(IntoResponse::into_response)
}

/// Creates a share link, and shows it once.
async fn create(
    session: Session,
    Path(id): Path<Uuid>,
    Form(Fields { expires }): Form<Fields>,
) -> Result<Response, Failure> {
    let expires_at = expires.map(|day| format!("{day}T00:00:00Z"));
    let input = ShareLinkInput { expires_at };
    let new = session.api.send(Method::POST, &format!("{}/shares", path(id)), &input).await?;
    show(&session, id, Some(&new)).await.map(IntoResponse::into_response)
}

/// Revokes a share link.
async fn delete(
    Session { api, .. }: Session,
    Path((id, share)): Path<(Uuid, Uuid)>,
) -> Result<Redirect, Failure> {
    api.delete(&format!("{}/shares/{share}", path(id))).await?;
    Ok(Redirect::to(&format!("/executions/{id}/shares")))
}

/// Shows the page, with a new share link.
async fn show<'a>(
    Session { api, user }: &'a Session,
    id: Uuid,
    new: Option<&NewShareLink>,
) -> Result<Page<'a>, Failure> {
    let summary = api.get::<Summary>(&format!("{}/summary", path(id)), &()).await?;
    let project = format!("/api/projects/{}", summary.project_id);
    let shares = format!("{}/shares", path(id));
    let (project, links) = try_join!(
        api.get::<Project>(&project, &()),
        api.list::<ShareLink>(&shares, &[("limit", 100)]),
    )?;
    let execution = &summary.execution;
    let body = html! {
        div.head { h1 { "Share" } }
        p.hint {
            "A share link shows this execution to readers without an account: results, messages, steps and \
             stored files, but no comments, tickets, users or other executions."
        }
        @if let Some(new) = new { (secret(new)) }
        ul.rows { @for link in &links.items { (row(id, link, user)) } }
        (cut(&links, "share link", None))
        @if links.items.is_empty() { p.empty { "Nobody without an account can see this execution." } }
        @if user.may(Permission::Execute) { (form(id)) }
        @else { p.hint { "The permission Execute is required to share an execution." } }
    };
    let mut trail = below_set(&project, &execution.test_set_id, &execution.test_set_name);
    let time = html! { (short_time(execution.request_time)) };
    trail.push(Crumb(format!("/executions/{id}"), time));
    let title = format!("Share · {}", execution.test_set_name);
    Ok(Page { user, title, trail, body })
}

fn secret(new: &NewShareLink) -> Markup {
    let page = new.url.as_deref().unwrap_or_default();
    html! {
        div.done role="status" {
            p { "The link is shown only now:" }
            (copyable(page))
            p { "The verdict as a badge, for example in a README:" }
            (copyable(&format!("[![tests]({})]({page})", new.badge_url)))
        }
    }
}

fn row(id: Uuid, link: &ShareLink, user: &Claims) -> Markup {
    html! {
        li.row.past {
            span.mark {}
            span.what {
                b { "Until " (short_time(link.expires_at)) }
                span.facts {
                    span.fact { "created " (short_time(link.created_at)) }
                    span.fact { "by " bdi { (plain(&link.created_by)) } }
                }
            }
            span.marks {}
            @if user.may(Permission::Execute) {
                form.time method="post" action=(format!("/executions/{id}/shares/{}/delete", link.id)) {
                    button { "Revoke" }
                }
            }
        }
    }
}

/// The form of a new share link.
fn form(id: Uuid) -> Markup {
    html! {
        form.filters method="post" action=(format!("/executions/{id}/shares")) {
            label.field { span { "Expires (by default in 30 days)" } input type="date" name="expires"; }
            button.primary { "Create a link" }
        }
    }
}
