//! `/projects/{projectId}/sets/{testSetId}`: the results of a test set in its latest executions.

mod grid;
mod history;
mod values;

use axum::{
    Router,
    extract::{Path, Query},
    response::IntoResponse,
    routing::get,
};
use futures::try_join;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    branch::Branch,
    paged::{Listed, Paged, unless_empty},
    part::{self, below_project},
    upload,
};
use crate::{
    api::{Api, Console, address},
    failure::Failure,
    layout::Page,
    record::{ExecutionEntry, Grid, Project, TestSet},
    session::Session,
    text::plain,
};

/// Number of executions and of test cases in the grid.
const COLUMNS: u32 = 20;
const CASES: u32 = 50;

/// Number of executions, archived or not, whose branches and environments are offered as filters.
const RECENT: u32 = 100;

/// Number of executions in the list below the grid.
const EXECUTIONS: usize = 10;

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/projects/{project}/sets/{set}", get(page))
        .route("/projects/{project}/sets/{set}/executions", get(history::page))
}

#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(default)]
struct Filter {
    #[serde(flatten)]
    branch: Branch,
    #[serde(
        deserialize_with = "unless_empty",
        rename = "environmentId",
        skip_serializing_if = "Option::is_none"
    )]
    environment: Option<String>,
    /// Any text if the page shows test cases that did not fail, too.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    all: Option<String>,
}

/// The executions that the page shows, as the interface names them.
#[derive(Clone, Serialize)]
struct Selected<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<&'a str>,
    #[serde(rename = "environmentId", skip_serializing_if = "Option::is_none")]
    environment: Option<&'a str>,
}

/// The runs of a test case that the page shows, in the parameters of its page.
#[derive(Serialize)]
struct Runs<'a> {
    #[serde(rename = "testSetId")]
    set: Uuid,
    #[serde(flatten)]
    selected: &'a Selected<'a>,
}

#[derive(Serialize)]
struct GridQuery<'a> {
    executions: u32,
    failing: bool,
    #[serde(flatten)]
    part: Listed<'a, Selected<'a>>,
}

async fn page(
    Session { api, user }: Session,
    Path((project, set)): Path<(Uuid, Uuid)>,
    Query(query): Query<Paged<Filter>>,
) -> Result<impl IntoResponse, Failure> {
    let path = format!("/api/projects/{project}/testsets/{set}");
    let (grid, latest) = (format!("{path}/grid"), format!("{path}/executions"));
    let history = format!("{latest}/history");
    let of = api.get::<Project>(&format!("/api/projects/{project}"), &()).await?;
    let filter = &query.filter;
    let branch = filter.branch.shown(&api, &latest, &of).await?;
    let selected =
        Selected { branch: branch.as_deref(), environment: filter.environment.as_deref() };
    let listed = Paged { filter: selected.clone(), cursor: query.cursor.clone() };
    let grid_query = GridQuery {
        executions: COLUMNS,
        failing: filter.all.is_none(),
        part: listed.listed(CASES),
    };
    let (grid, executions, recent) = try_join!(
        api.get::<Grid>(&grid, &grid_query),
        api.list::<ExecutionEntry>(&latest, &selected),
        api.list::<ExecutionEntry>(&history, &[("limit", RECENT)]),
    )?;
    let name = name(&api, &path, &executions.items).await?;

    let is_filtered = filter.branch != Branch::default() || filter.environment.is_some();
    let page = format!("/projects/{project}/sets/{set}");
    let all = history::address_of(&page, &selected);
    let body = html! {
        div.head {
            h1 { bdi { (plain(&name)) } }
            span.aside { a href=(format!("{page}/gate")) { "Gate" } }
        }
        @if recent.items.is_empty() && !is_filtered {
            section.empty {
                h2 { "No executions yet" }
                p {
                    "Upload the report of a test run. With an " a href="/account" { "API token" }
                    ", run one of these:"
                }
                (upload::by_names(&of.name, &name))
                (upload::to_set(&project.to_string(), &set.to_string()))
            }
        } @else {
            (filters(&page, filter, branch.as_deref(), &of))
            (values::chips(&page, filter, branch.as_deref(), &recent.items))
            @if executions.items.is_empty() {
                p.empty {
                    @if is_filtered { "No execution matches these filters." }
                    @else { "All executions of this test set are archived. " a href=(all) { "Show them" } }
                }
            } @else {
                (grid::table(&grid, &page, filter, &Runs { set, selected: &selected }))
                (query.pager(&page, grid.next_cursor.as_deref()))
                (latest_list(&executions.items, &all))
            }
        }
    };
    let trail = below_project(&of);
    Ok(Page { user: &user, title: name, trail, body }.into_response())
}

/// Reads the record of a test set without its test cases.
pub(super) async fn record(api: &Api, path: &str) -> Result<TestSet, Failure> {
    api.get_without(path, "TestCases").await
}

/// Returns the name of the set, from its record if no execution has it.
async fn name(api: &Api, path: &str, executions: &[ExecutionEntry]) -> Result<String, Failure> {
    match executions.first() {
        Some(execution) => Ok(execution.test_set_name.clone()),
        None => Ok(record(api, path).await?.name),
    }
}

fn filters(page: &str, filter: &Filter, branch: Option<&str>, project: &Project) -> Markup {
    let of = |branch| address(page, &Filter { branch, ..filter.clone() });
    html! {
        form.filters action=(page) {
            (filter.branch.field(branch, project, of))
            @if let Some(environment) = &filter.environment {
                input type="hidden" name="environmentId" value=(environment);
            }
            @if let Some(all) = &filter.all { input type="hidden" name="all" value=(all); }
            button { "Filter" }
            @if filter.branch != Branch::default() || filter.environment.is_some() {
                a.button.quiet href=(page) { "Clear" }
            }
        }
    }
}

/// The latest executions of those that the page shows, and a link to all of them.
fn latest_list(executions: &[ExecutionEntry], all: &str) -> Markup {
    let has_more = executions.len() > EXECUTIONS;
    html! {
        h2 { @if has_more { "Latest " (EXECUTIONS) " executions" } @else { "Executions" } }
        ol.rows { @for execution in executions.iter().take(EXECUTIONS) {
            (part::execution_row(execution, false))
        } }
        @if has_more { p.more { a href=(all) { "All executions" } } }
    }
}
