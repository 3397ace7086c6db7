//! A pool with its values, one of which is in a form.

use axum::{
    Form,
    extract::{Path, Query},
    response::{IntoResponse, Redirect, Response},
};
use futures::try_join;
use http::{Method, StatusCode};
use maud::html;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    form::Entry,
    in_use,
    part::{Part, VALUES, pager},
    value,
};
use crate::{
    api::address,
    failure::Failure,
    layout::{Crumb, Page},
    page::{
        announcement::Announcement,
        part::{below_project, text_field},
        version::Version,
    },
    record::{Permission, Pool, Project},
    session::Session,
    text::plain,
};

pub(super) async fn page(
    session: Session,
    Path(ids): Path<(Uuid, Uuid)>,
    Query(part): Query<Part>,
    Query(announcement): Query<Announcement>,
) -> Result<Response, Failure> {
    show(&session, ids, &part, &announcement, None).await
}

/// Changes the name of the pool.
pub(super) async fn rename(
    session: Session,
    Path(ids): Path<(Uuid, Uuid)>,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Result<Response, Failure> {
    let entry = Entry::read(pairs);
    let input = json!({"Name": entry.name, "DataVersion": entry.version.base()});
    match session.api.send::<Pool>(Method::PUT, &operation(ids), &input).await {
        Ok(_) => Ok(Redirect::to(&format!("{}?saved=yes", path(ids))).into_response()),
        Err(failure) => refuse(&session, ids, (entry, reason(failure)?)).await,
    }
}

/// Returns why a change was refused, unless somebody else has changed the pool since: its form says so.
fn reason(failure: Failure) -> Result<Option<String>, Failure> {
    if failure.is_stale() {
        return Ok(None);
    }
    failure.of_conflict().or_else(Failure::of_input).map(Some)
}

/// Adds, changes or removes a value.
pub(super) async fn save(
    session: Session,
    Path(ids): Path<(Uuid, Uuid)>,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Result<Response, Failure> {
    let (api, operation, entry) = (&session.api, operation(ids), Entry::read(pairs));
    let Pool { mut values, data_version, .. } = api.get::<Pool>(&operation, &()).await?;
    let Some(index) = entry.apply_to(&mut values) else {
        if entry.remove {
            return Ok(saved(ids, &Part::default(), "deleted"));
        }
        let problem =
            "Somebody else has removed this value. Your contents are in the form of a new one.";
        return refuse(&session, ids, (entry, Some(problem.to_owned()))).await;
    };
    // The other values are those that were read here, so the version is never left out.
    let version = entry.version.base().unwrap_or(&data_version);
    let input: Value = json!({"Values": values, "DataVersion": version});
    match api.send::<Pool>(Method::PUT, &operation, &input).await {
        Ok(_) => {
            let announced = if entry.remove { "deleted" } else { "saved" };
            Ok(saved(ids, &Part::at(index), announced))
        }
        Err(failure) => refuse(&session, ids, (entry, reason(failure)?)).await,
    }
}

/// Leads to a part of the values, and announces what was done.
fn saved(ids: (Uuid, Uuid), part: &Part, announced: &str) -> Response {
    let page = address(&path(ids), part);
    let separator = if page.contains('?') { '&' } else { '?' };
    Redirect::to(&format!("{page}{separator}{announced}=yes")).into_response()
}

/// Deletes the pool, unless tests need it.
pub(super) async fn delete(
    session: Session,
    Path((project, id)): Path<(Uuid, Uuid)>,
) -> Result<Response, Failure> {
    match session.api.delete(&operation((project, id))).await {
        Err(failure) if !failure.is_not_found() => {
            let refused = (Entry::default(), Some(failure.of_conflict()?));
            refuse(&session, (project, id), refused).await
        }
        // Somebody else may have deleted it meanwhile.
        _ => {
            let page = format!("/projects/{project}/pools?deleted=yes");
            Ok(Redirect::to(&page).into_response())
        }
    }
}

/// Shows the pool with what was entered, and the reason why it is refused, unless its form says it.
async fn refuse(
    session: &Session,
    ids: (Uuid, Uuid),
    refused: (Entry, Option<String>),
) -> Result<Response, Failure> {
    let part = Part { value: refused.0.value.clone(), from: None };
    show(session, ids, &part, &Announcement::default(), Some(refused)).await
}

fn path((project, id): (Uuid, Uuid)) -> String {
    format!("/projects/{project}/pools/{id}")
}

/// Returns the path in the interface.
fn operation(ids: (Uuid, Uuid)) -> String {
    format!("/api{}", path(ids))
}

async fn show(
    Session { api, user }: &Session,
    ids: (Uuid, Uuid),
    part: &Part,
    announcement: &Announcement,
    refused: Option<(Entry, Option<String>)>,
) -> Result<Response, Failure> {
    let (project, operation) = (format!("/api/projects/{}", ids.0), operation(ids));
    let (project, pool) =
        try_join!(api.get::<Project>(&project, &()), api.get::<Pool>(&operation, &()))?;
    let (entry, problem) = refused.unzip();
    let problem = problem.flatten();
    let entry =
        entry.map(|entry| if entry.is_gone(&pool.values) { entry.renewed() } else { entry });
    let status = if entry.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let (path, begin, may_write) =
        (path(ids), part.begin(&pool.values), user.may(Permission::Write));
    let of_new = entry.as_ref().filter(|entry| entry.value.as_deref() == Some(""));
    let name = entry.as_ref().filter(|entry| entry.value.is_none() && !entry.name.is_empty());
    let version = name.map_or(Version::of(&pool.data_version), |entry| entry.version.clone());
    let name = name.map_or(pool.name.as_str(), |entry| entry.name.as_str());
    let body = html! {
        div.head { h1 { bdi { (plain(&pool.name)) } } (in_use(&pool)) }
        (announcement.show())
        @if let Some(problem) = &problem { p.alert role="alert" { (plain(problem)) } }
        p.lead { "Each test gets a value that no other test has. Secrets are shown to engines only." }
        ol.rows.spaced { @for (index, value) in pool.values.iter().enumerate().skip(begin).take(VALUES) {
            @if may_write && part.value.as_ref() == Some(&value.id) {
                li.row #value {
                    @let entered = entry.as_ref().filter(|entry| entry.value.as_ref() == Some(&value.id));
                    (value::form(&path, &pool, entered.unwrap_or(&Entry::of(value))))
                }
            } @else { (value::row(&path, index, value, may_write)) }
        } }
        (pager(&path, begin, pool.values.len()))
        @if may_write {
            h2 { "New value" }
            (value::form(&path, &pool, of_new.unwrap_or(&Entry::like(pool.values.first()))))
            h2 { "Name" }
            form.filters method="post" action=(path) {
                (version.fields(&pool.data_version, "pool"))
                (text_field("name", "Name", Some(name)))
                button { "Rename" }
            }
            p.hint { "Variables that name this pool by another name keep their own contents." }
            details {
                summary { "Delete this pool" }
                form method="post" action=(format!("{path}/delete")) { button { "Delete" } }
            }
        }
    };
    let mut trail = below_project(&project);
    trail.push(Crumb(format!("/projects/{}/pools", ids.0), html! { "Pools" }));
    Ok((status, Page { user, title: pool.name.clone(), trail, body }).into_response())
}
