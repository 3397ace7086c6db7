//! `/executions/{executionId}/comparison`: the tests that have another result in another execution.

use axum::{
    extract::{Path, Query},
    response::{IntoResponse, Response},
};
use futures::try_join;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::path;
use crate::{
    api::{Api, List},
    chart::glyph,
    failure::Failure,
    layout::{Crumb, Page},
    page::{
        paged::{Paged, unless_empty},
        part::{below_set, result_badge, revision},
        row::place,
    },
    record::{Difference, ExecutionEntry, Outcome, Project, Summary},
    session::Session,
    text::{plain, short_time},
};

/// Number of tests on a page.
const TESTS: u32 = 100;

#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Filter {
    /// Id of the other execution.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    with: Option<String>,
}

/// The other execution, as the interface names it.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Other<'a> {
    other_execution_id: &'a str,
}

/// Lists the tests that have another result in another execution.
pub(super) async fn read(
    api: &Api,
    (execution, other): (&str, &str),
    cursor: Option<String>,
    limit: u32,
) -> Result<List<Difference>, Failure> {
    let query = Paged { filter: Other { other_execution_id: other }, cursor };
    api.list(&format!("{}/comparison", path(execution)), &query.listed(limit)).await
}

/// Returns the address of the comparison of two executions.
pub(super) fn address_of(execution: &str, other: &str) -> String {
    format!("/executions/{execution}/comparison?with={other}")
}

pub(super) async fn page(
    Session { api, user }: Session,
    Path(id): Path<Uuid>,
    Query(query): Query<Paged<Filter>>,
) -> Result<Response, Failure> {
    let with = query.filter.with.as_deref().and_then(|with| with.parse::<Uuid>().ok());
    let [id, with] = [id, with.ok_or_else(Failure::not_found)?].map(|id| id.to_string());
    let [of, of_other] = [&id, &with].map(|id| format!("{}/summary", path(id)));
    let (summary, other, differences) = try_join!(
        api.get::<Summary>(&of, &()),
        api.get::<Summary>(&of_other, &()),
        read(&api, (&id, &with), query.cursor.clone(), TESTS),
    )?;
    let project = format!("/api/projects/{}", summary.project_id);
    let project = api.get::<Project>(&project, &()).await?;

    let execution = &summary.execution;
    let body = html! {
        div.head { h1 { "Comparison" } }
        p.lead { "Tests with other results in " (run(&other.execution)) " than in " (run(execution)) "." }
        @if differences.items.is_empty() { (query.nothing("All results are the same.")) }
        ul.rows.spaced { @for difference in &differences.items { (row(difference)) } }
        (query.pager(&format!("/executions/{id}/comparison"), differences.next.as_deref()))
    };
    let mut trail = below_set(&project, &execution.test_set_id, &execution.test_set_name);
    trail.push(Crumb(format!("/executions/{id}"), short_time(execution.request_time)));
    let title = format!("Comparison · {}", execution.test_set_name);
    Ok(Page { user: &user, title, trail, body }.into_response())
}

/// An execution, by its time and its revision.
fn run(execution: &ExecutionEntry) -> Markup {
    let revision = revision(execution.branch.as_deref(), execution.commit.as_deref());
    html! {
        a href=(format!("/executions/{}", execution.id)) { (short_time(execution.request_time)) }
        @if let Some(revision) = &revision { " (" bdi { (plain(revision)) } ")" }
    }
}

/// A test with its result in this execution and in the other one.
fn row(difference: &Difference) -> Markup {
    let badge = |outcome: Outcome| result_badge(outcome, outcome.label());
    html! {
        li.row.past {
            span.mark { (glyph(difference.other_result)) }
            span.what {
                a href=(format!("/cases/{}", difference.test_case_id)) {
                    bdi { (plain(&difference.test_case_name)) }
                }
                (place(&difference.test_case_identifier, &difference.test_case_name))
            }
            span.marks { (badge(difference.result)) "→" (badge(difference.other_result)) }
        }
    }
}
