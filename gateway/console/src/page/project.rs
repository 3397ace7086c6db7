//! `/projects/{projectId}`: the test sets and the latest executions of a project.

mod sets;

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
    cases, executions,
    executions::Filter,
    paged::{Paged, cut},
    part::below_projects,
    upload,
};
use crate::{
    api::{Console, List},
    failure::Failure,
    layout::Page,
    record::{ExecutionEntry, Project},
    session::Session,
    text::plain,
};

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/projects/{project}", get(page))
        .route("/projects/{project}/sets", get(sets::page))
}

async fn page(
    Session { api, user }: Session,
    Path(id): Path<Uuid>,
    Query(query): Query<Paged<Filter>>,
) -> Result<impl IntoResponse, Failure> {
    let path = format!("/api/projects/{id}");
    let (first, list) = (Paged::default(), format!("{path}/executions"));
    let (project, sets, listed) = try_join!(
        api.get::<Project>(&path, &()),
        sets::read(&api, id, &first),
        executions::read(&api, &list, &query),
    )?;
    let latest = sets::latest(&api, &project, &sets.items).await?;

    let is_new = listed.items.is_empty() && query == Paged::default();
    let body = html! {
        div.head {
            h1 { bdi { (plain(&project.name)) } }
            @if !is_new { (cases::search(&format!("/projects/{id}/cases"), None)) }
        }
        @if let Some(description) = &project.description { p.lead { (plain(description)) } }
        @if is_new { (first_steps(&project)) }
        @if !sets.items.is_empty() {
            section aria-labelledby="sets" {
                h2 #sets { "Test sets" }
                (sets::cards(&project, &sets.items, &latest))
                (cut(&sets, "test set", Some(&format!("/projects/{id}/sets"))))
            }
        }
        @if !is_new { (executions_of(&project, &listed, &query)) }
    };
    let title = project.name.clone();
    Ok(Page { user: &user, title, trail: below_projects(), body }.into_response())
}

fn executions_of(
    project: &Project,
    executions: &List<ExecutionEntry>,
    query: &Paged<Filter>,
) -> Markup {
    let path = format!("/projects/{}", project.id);
    html! {
        section aria-labelledby="executions" {
            div.head {
                h2 #executions { "Executions" }
                span.aside {
                    a href=(format!("{path}/insights")) { "Insights" } " · "
                    a href=(format!("{path}/incidents")) { "Incidents" } " · "
                    a href=(format!("{path}/knownfailures")) { "Known failures" } " · "
                    a href=(format!("{path}/causes")) { "Causes" } " · "
                    a href=(format!("{path}/monitors")) { "Monitors" } " · "
                    a href=(format!("{path}/pools")) { "Pools" }
                }
            }
            (executions::list(&path, executions, query, true))
        }
    }
}

/// Explains how the first results get here.
fn first_steps(project: &Project) -> Markup {
    html! {
        section.empty {
            h2 { "No executions yet" }
            p {
                "Upload the report of a test run. With an " a href="/account" { "API token" }
                ", run this where your reports are:"
            }
            (upload::by_names(&project.name, "nightly"))
            p { "Or only with " code { "curl" } ":" }
            (upload::to_project(&project.id))
        }
    }
}
