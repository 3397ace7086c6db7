//! `/projects/{projectId}/sets/{testSetId}/executions`: all executions of a test set, archived or not, of which its own
//! page shows the latest.

use axum::{
    extract::{Path, Query},
    response::IntoResponse,
};
use futures::try_join;
use maud::html;
use uuid::Uuid;

use super::{Selected, name};
use crate::{
    api::address,
    failure::Failure,
    layout::Page,
    page::{
        executions::{self, Filter},
        paged::Paged,
        part::below_set,
    },
    record::Project,
    session::Session,
    text::plain,
};

/// Returns the address of all executions that a page of a test set shows.
pub(super) fn address_of(page: &str, selected: &Selected<'_>) -> String {
    address(&format!("{page}/executions"), &Filter::of(selected.branch, selected.environment))
}

pub(super) async fn page(
    Session { api, user }: Session,
    Path((project, set)): Path<(Uuid, Uuid)>,
    Query(query): Query<Paged<Filter>>,
) -> Result<impl IntoResponse, Failure> {
    let of = format!("/api/projects/{project}");
    let path = format!("{of}/testsets/{set}");
    let executions = format!("{path}/executions/history");
    let (project, executions) =
        try_join!(api.get::<Project>(&of, &()), executions::read(&api, &executions, &query),)?;
    let name = name(&api, &path, &executions.items).await?;
    let page = format!("/projects/{}/sets/{set}/executions", project.id);
    let body = html! {
        div.head { h1 { "Executions of " bdi { (plain(&name)) } } }
        (executions::list(&page, &executions, &query, false))
    };
    let title = format!("Executions · {name}");
    let trail = below_set(&project, &set.to_string(), &name);
    Ok(Page { user: &user, title, trail, body }.into_response())
}
