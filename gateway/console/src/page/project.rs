//! `/projects/{projectId}`: the test sets and the latest executions of a project.

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
    cases,
    paged::{Paged, cut, unless_empty},
    part::{self, below_projects, choice, text_field},
    upload,
};
use crate::{
    api::{Api, Console, List},
    chart::bar,
    failure::Failure,
    layout::Page,
    record::{ExecutionEntry, Project, TestSetEntry},
    session::Session,
    text::{counted, plain, short_time, zoned_day},
};

const SETS: u32 = 60;
const EXECUTIONS: u32 = 25;

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/projects/{project}", get(page))
}

/// The executions to show, as the interface names them.
#[derive(Clone, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Filter {
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    from_date: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    to_date: Option<String>,
    /// Minutes by which UTC is ahead at the start of the first day and at the end of the last one, if the
    /// browser says so.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    from_date_offset: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    to_date_offset: Option<String>,
}

impl Filter {
    /// Returns the filter of the interface.
    fn of_interface(&self) -> Self {
        let zoned = |day: &Option<String>, ahead: &Option<String>| {
            day.as_deref().map(|day| zoned_day(day, ahead.as_deref()))
        };
        Self {
            from_date: zoned(&self.from_date, &self.from_date_offset),
            to_date: zoned(&self.to_date, &self.to_date_offset),
            from_date_offset: None,
            to_date_offset: None,
            ..self.clone()
        }
    }
}

/// The query of the executions that show how the sets are.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LatestQuery<'a> {
    branch: &'a str,
    latest_of: String,
    limit: u32,
}

async fn page(
    Session { api, user }: Session,
    Path(id): Path<Uuid>,
    Query(query): Query<Paged<Filter>>,
) -> Result<impl IntoResponse, Failure> {
    let path = format!("/api/projects/{id}");
    let (sets, executions) = (format!("{path}/testsets"), format!("{path}/executions"));
    let of_interface = Paged { filter: query.filter.of_interface(), cursor: query.cursor.clone() };
    let listed = of_interface.listed(EXECUTIONS);
    let (project, sets, listed) = try_join!(
        api.get::<Project>(&path, &()),
        api.list::<TestSetEntry>(&sets, &[("limit", SETS)]),
        api.list::<ExecutionEntry>(&executions, &listed),
    )?;
    let latest = latest(&api, &executions, &project, &sets.items).await?;

    let is_new = listed.items.is_empty() && query == Paged::default();
    let body = html! {
        div.head {
            h1 { bdi { (plain(&project.name)) } }
            @if !is_new { (cases::search(&format!("/projects/{id}/cases"), None)) }
        }
        @if let Some(description) = &project.description { p.lead { (plain(description)) } }
        @if is_new { (first_steps(&project)) }
        @if !sets.items.is_empty() { (test_sets(&project, &sets, &latest)) }
        @if !is_new { (executions_of(&project, &listed, &query)) }
    };
    let title = project.name.clone();
    Ok(Page { user: &user, title, trail: below_projects(), body }.into_response())
}

/// Returns the latest ended runs of test sets on the default branch.
async fn latest(
    api: &Api,
    executions: &str,
    project: &Project,
    sets: &[TestSetEntry],
) -> Result<Vec<ExecutionEntry>, Failure> {
    if sets.is_empty() {
        return Ok(Vec::new());
    }
    let latest_of = sets.iter().map(|set| set.id.as_str()).collect::<Vec<_>>().join(",");
    let latest = LatestQuery { branch: &project.default_branch, latest_of, limit: SETS };
    Ok(api.list::<ExecutionEntry>(executions, &latest).await?.items)
}

fn test_sets(project: &Project, sets: &List<TestSetEntry>, latest: &[ExecutionEntry]) -> Markup {
    let of = |set: &TestSetEntry| latest.iter().find(|run| run.test_set_id == set.id);
    html! {
        section aria-labelledby="sets" {
            h2 #sets { "Test sets" }
            ul.cards { @for set in &sets.items { (test_set(project, set, of(set))) } }
            (cut(sets, "test set"))
        }
    }
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
            (filters(&path, &query.filter))
            @if executions.items.is_empty() {
                p.empty { "No execution matches these filters. " a href=(path) { "Show all" } }
            }
            ol.rows { @for execution in &executions.items { (part::execution_row(execution, true)) } }
            (query.pager(&path, executions.next.as_deref()))
        }
    }
}

fn filters(path: &str, filter: &Filter) -> Markup {
    let results = ["Passed", "Failed", "Error", "Aborted", "Canceled"];
    let date = |name: &str, label: &str, value: &Option<String>| {
        html! {
            label.field {
                span { (label) span.utc { " (UTC)" } }
                input type="date" name=(name) value=[value.as_deref()] data-last[name == "toDate"];
            }
        }
    };
    html! {
        form.filters action=(path) {
            (choice("result", "Result", &results, filter.result.as_deref()))
            (text_field("branch", "Branch", filter.branch.as_deref()))
            (text_field("tag", "Tag", filter.tag.as_deref()))
            (date("fromDate", "From", &filter.from_date))
            (date("toDate", "To", &filter.to_date))
            button { "Filter" }
            @if *filter != Filter::default() { a.button.quiet href=(path) { "Clear" } }
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
