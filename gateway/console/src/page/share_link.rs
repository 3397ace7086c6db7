//! `/executions/{executionId}/shares`: the share links of an execution.

use axum::{
    Form, Router,
    extract::Path,
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use futures::try_join;
use http::{Method, StatusCode};
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
    text::{plain, short_time, time_before, until},
};

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/executions/{execution}/shares", get(page).post(create))
        .route("/executions/{execution}/shares/{share}/delete", post(delete))
}

/// The fields of the form, as they were entered.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Fields {
    /// The last day.
    #[serde(deserialize_with = "unless_empty")]
    expires: Option<String>,
    /// Minutes by which UTC is ahead at the end of that day, if the browser says so.
    #[serde(deserialize_with = "unless_empty")]
    expires_offset: Option<String>,
}

/// The request to the interface.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ShareLinkInput {
    expires_at: Option<String>,
}

async fn page(session: Session, Path(id): Path<Uuid>) -> Result<Response, Failure> {
    show(&session, id, html! {}, &Fields::default()).await.map(IntoResponse::into_response)
}

/// Creates a share link, and shows it once. One that is refused stays in the form.
async fn create(
    session: Session,
    Path(id): Path<Uuid>,
    Form(fields): Form<Fields>,
) -> Result<Response, Failure> {
    let offset = fields.expires_offset.as_deref();
    let input =
        ShareLinkInput { expires_at: fields.expires.as_deref().map(|day| until(day, offset)) };
    let shares = format!("{}/shares", path(id));
    match session.api.send::<NewShareLink>(Method::POST, &shares, &input).await {
        Ok(new) => {
            let page = show(&session, id, secret(&new), &Fields::default()).await?;
            Ok(page.into_response())
        }
        Err(failure) => {
            let problem = failure.of_conflict().or_else(Failure::of_input)?;
            let notice = html! { p.alert role="alert" { (plain(&problem)) } };
            let page = show(&session, id, notice, &fields).await?;
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
        }
    }
}

/// Revokes a share link.
async fn delete(
    Session { api, .. }: Session,
    Path((id, share)): Path<(Uuid, Uuid)>,
) -> Result<Redirect, Failure> {
    api.delete_if_any(&format!("{}/shares/{share}", path(id))).await?;
    Ok(Redirect::to(&format!("/executions/{id}/shares")))
}

/// Shows the page, with what became of a new share link, and what was entered.
async fn show<'a>(
    Session { api, user }: &'a Session,
    id: Uuid,
    notice: Markup,
    entered: &Fields,
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
        (notice)
        ul.rows { @for link in &links.items { (row(id, link, user)) } }
        (cut(&links, "share link", None))
        @if links.items.is_empty() { p.empty { "Nobody without an account can see this execution." } }
        @if user.may(Permission::Execute) { (form(id, entered)) }
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
                b { "Until " (time_before(link.expires_at)) }
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
fn form(id: Uuid, entered: &Fields) -> Markup {
    html! {
        form.filters method="post" action=(format!("/executions/{id}/shares")) {
            label.field {
                span { "Until and including (by default 30 days)" span.utc { " (UTC)" } }
                input type="date" name="expires" value=[entered.expires.as_deref()] data-last data-days="90";
            }
            button.primary { "Create a link" }
        }
    }
}
