//! `/projects/{projectId}/pools` and each of them: values, such as test accounts, each of which one test at a time
//! may use.

mod form;
mod part;
mod value;
mod values;

use axum::{
    Form, Router,
    extract::{Path, Query},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use futures::try_join;
use http::{Method, StatusCode};
use maud::{Markup, html};
use serde_json::json;
use uuid::Uuid;

use self::form::Entry;
use super::{
    announcement::Announcement,
    paged::Paged,
    part::{below_project, text_field},
};
use crate::{
    api::Console,
    failure::Failure,
    layout::Page,
    record::{Permission, Pool, PoolValue, Project},
    session::Session,
    text::{counted, number, plain},
};

/// Number of pools on a page. The interface returns them with all of their values.
const POOLS: u32 = 25;

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/projects/{project}/pools", get(list).post(create))
        .route("/projects/{project}/pools/{pool}", get(values::page).post(values::rename))
        .route("/projects/{project}/pools/{pool}/values", post(values::save))
        .route("/projects/{project}/pools/{pool}/delete", post(values::delete))
}

async fn list(
    session: Session,
    Path(id): Path<Uuid>,
    Query(query): Query<Paged<()>>,
    Query(announcement): Query<Announcement>,
) -> Result<Response, Failure> {
    show(&session, id, &query, &announcement, (&Entry::default(), None)).await
}

/// Creates a pool with its first value. One that is refused stays in the form.
async fn create(
    session: Session,
    Path(id): Path<Uuid>,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Result<Response, Failure> {
    let (entry, mut values) = (Entry::read(pairs), Vec::<PoolValue>::new());
    entry.apply_to(&mut values);
    let input = json!({"Name": entry.name, "Values": values});
    let path = format!("/api/projects/{id}/pools");
    let problem = match session.api.send::<Pool>(Method::POST, &path, &input).await {
        Ok(pool) => {
            let page = format!("/projects/{id}/pools/{}?saved=yes", pool.id);
            return Ok(Redirect::to(&page).into_response());
        }
        Err(failure) => failure.of_conflict().or_else(Failure::of_input)?,
    };
    let (query, announcement) = (Paged::default(), Announcement::default());
    show(&session, id, &query, &announcement, (&entry, Some(&problem))).await
}

async fn show(
    Session { api, user }: &Session,
    id: Uuid,
    query: &Paged<()>,
    announcement: &Announcement,
    (entry, problem): (&Entry, Option<&str>),
) -> Result<Response, Failure> {
    let project = format!("/api/projects/{id}");
    let (pools, listed) = (format!("{project}/pools"), query.listed(POOLS));
    let (project, pools) =
        try_join!(api.get::<Project>(&project, &()), api.list::<Pool>(&pools, &listed))?;
    let path = format!("/projects/{id}/pools");
    let body = html! {
        div.head { h1 { "Pools" } }
        (announcement.show())
        p.lead {
            "A pool has values, such as test accounts, each of which one test at a time may use. Variables of subjects \
             and test plans that name the pool take their contents from it."
        }
        @if pools.items.is_empty() { (query.nothing("This project has no pools.")) }
        ul.rows.spaced { @for pool in &pools.items { (row(&path, pool)) } }
        (query.pager(&path, pools.next.as_deref()))
        @if user.may(Permission::Write) {
            h2 { "New pool" }
            @if let Some(problem) = problem { p.alert role="alert" { (plain(problem)) } }
            form method="post" action=(path) {
                div.filters { (text_field("name", "Name", Some(&entry.name))) }
                p.hint { "The contents of its first value:" }
                (form::fields(&entry.contents))
                button { "Create" }
            }
        }
    };
    let title = format!("Pools · {}", project.name);
    let trail = below_project(&project);
    let status = if problem.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    Ok((status, Page { user, title, trail, body }).into_response())
}

fn row(path: &str, pool: &Pool) -> Markup {
    html! {
        li.row.past {
            span.mark {}
            div.what {
                a href=(format!("{path}/{}", pool.id)) { bdi { (plain(&pool.name)) } }
                p.small { (counted(count(pool), "value")) }
            }
            span.marks { (in_use(pool)) }
        }
    }
}

fn count(pool: &Pool) -> i64 {
    i64::try_from(pool.values.len()).unwrap_or(i64::MAX)
}

/// How many values tests use now.
fn in_use(pool: &Pool) -> Markup {
    let is_free = pool.in_use < count(pool);
    let class = if pool.in_use == 0 {
        "none"
    } else if is_free {
        "pass"
    } else {
        "warn"
    };
    html! {
        span class=(format!("badge {class}")) {
            @if pool.in_use == 0 { "None in use now" }
            @else { (number(pool.in_use)) " of " (number(count(pool))) " in use now" }
        }
    }
}
