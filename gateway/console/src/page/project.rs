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
    part::{below_projects, execution_row},
    upload,
};
use crate::{
    api::{Api, Console, List},
    failure::Failure,
    layout::Page,
    record::{ExecutionEntry, Project},
    session::Session,
    text::plain,
};

/// Number of archived executions that a project without others shows.
const ARCHIVED: u32 = 25;

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

    let has_none = listed.items.is_empty() && query == Paged::default();
    let archived = if has_none { archived(&api, &list).await? } else { None };
    let is_new = has_none && archived.is_none();
    let list = match &archived {
        Some(archived) => only_archived(archived),
        None => executions::list(&format!("/projects/{}", project.id), &listed, &query, true),
    };
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
        @if !is_new { (executions_of(&project, &list)) }
    };
    let title = project.name.clone();
    Ok(Page { user: &user, title, trail: below_projects(), body }.into_response())
}

/// Returns the latest archived executions of a project, if it has any. `executions` is the path of the others.
async fn archived(api: &Api, executions: &str) -> Result<Option<List<ExecutionEntry>>, Failure> {
    let archive = format!("{executions}/archive");
    let archived = api.list::<ExecutionEntry>(&archive, &[("limit", ARCHIVED)]).await?;
    Ok(Some(archived).filter(|archived| !archived.items.is_empty()))
}

fn only_archived(executions: &List<ExecutionEntry>) -> Markup {
    html! {
        p.hint { "All executions of this project are archived." }
        ol.rows { @for execution in &executions.items { (execution_row(execution, true)) } }
        (cut(executions, "execution", None))
    }
}

fn executions_of(project: &Project, list: &Markup) -> Markup {
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
            (list)
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
