//! `/projects/{projectId}/sets`: all test sets of a project, of which its own page shows the first ones.

use axum::{
    extract::{Path, Query},
    response::IntoResponse,
};
use futures::try_join;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    api::{Api, List},
    chart::bar,
    failure::Failure,
    layout::Page,
    page::{
        paged::{Paged, unless_empty},
        part::below_project,
    },
    record::{ExecutionEntry, Project, TestSetEntry},
    session::Session,
    text::{clean, counted, plain, short_time},
};

/// Number of test sets on a page.
const SETS: u32 = 60;

#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Filter {
    /// Text in the name.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    q: Option<String>,
}

/// The query of the executions that show how the sets are.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LatestQuery<'a> {
    branch: &'a str,
    latest_of: String,
    limit: u32,
}

pub(super) async fn page(
    Session { api, user }: Session,
    Path(id): Path<Uuid>,
    Query(query): Query<Paged<Filter>>,
) -> Result<impl IntoResponse, Failure> {
    let project = format!("/api/projects/{id}");
    let (project, sets) = try_join!(api.get::<Project>(&project, &()), read(&api, id, &query))?;
    let latest = latest(&api, &project, &sets.items).await?;
    let path = format!("/projects/{id}/sets");
    let body = html! {
        div.head { h1 { "Test sets" } (search(&path, query.filter.q.as_deref())) }
        @if sets.items.is_empty() && query.cursor.is_some() { (query.nothing("")) }
        @else if sets.items.is_empty() {
            p.empty { "No test set has this text in its name. " a href=(path) { "Show all" } }
        }
        (cards(&project, &sets.items, &latest))
        (query.pager(&path, sets.next.as_deref()))
    };
    let title = format!("Test sets · {}", project.name);
    let trail = below_project(&project);
    Ok(Page { user: &user, title, trail, body }.into_response())
}

/// Reads a part of the test sets of a project.
pub(super) async fn read(
    api: &Api,
    project: Uuid,
    query: &Paged<Filter>,
) -> Result<List<TestSetEntry>, Failure> {
    api.list(&format!("/api/projects/{project}/testsets"), &query.listed(SETS)).await
}

fn search(path: &str, q: Option<&str>) -> Markup {
    html! {
        form.search role="search" action=(path) {
            input type="search" name="q" aria-label="Search test sets" placeholder="Search test sets"
                value=(clean(q.unwrap_or_default()));
            button { "Search" }
        }
    }
}

/// Returns the latest ended runs of test sets on the default branch.
pub(super) async fn latest(
    api: &Api,
    project: &Project,
    sets: &[TestSetEntry],
) -> Result<Vec<ExecutionEntry>, Failure> {
    if sets.is_empty() {
        return Ok(Vec::new());
    }
    let latest_of = sets.iter().map(|set| set.id.as_str()).collect::<Vec<_>>().join(",");
    let latest = LatestQuery { branch: &project.default_branch, latest_of, limit: SETS };
    let executions = format!("/api/projects/{}/executions", project.id);
    Ok(api.list::<ExecutionEntry>(&executions, &latest).await?.items)
}

/// The test sets of a list, with their latest ended runs.
pub(super) fn cards(project: &Project, sets: &[TestSetEntry], latest: &[ExecutionEntry]) -> Markup {
    let of = |set: &TestSetEntry| latest.iter().find(|run| run.test_set_id == set.id);
    html! { ul.cards { @for set in sets { (test_set(project, set, of(set))) } } }
}

/// A test set with its latest ended run of the default branch, or else its latest run.
fn test_set(project: &Project, set: &TestSetEntry, latest: Option<&ExecutionEntry>) -> Markup {
    let statistic = latest.map(|run| run.statistic).or(set.last_execution_statistic);
    html! {
        li.card {
            a href=(format!("/projects/{}/sets/{}", project.id, set.id)) {
                bdi { (plain(&set.name)) }
            }
            @match statistic {
                Some(last) => {
                    (bar(&last))
                    p.small {
                        @if last.failures() > 0 { b.fail { (counted(last.failures(), "failure")) } " of " }
                        (counted(last.total, "test"))
                    }
                    p.small {
                        @if let Some(run) = latest {
                            bdi { (plain(&project.default_branch)) } " · " (short_time(run.request_time))
                        } @else { "Latest run of any branch" }
                    }
                }
                None => p.small { "Not executed yet" }
            }
        }
    }
}
