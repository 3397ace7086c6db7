//! `/projects/{projectId}/cases`: the test cases of a project.

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
    classification::Place,
    paged::{Paged, unless_empty},
    part::below_project,
    row::place,
};
use crate::{
    api::Console,
    chart::{glyph, strip},
    failure::Failure,
    layout::Page,
    record::{Outcome, Project, TestCaseEntry},
    session::Session,
    text::{clean, plain},
};

/// Number of test cases on a page.
const CASES: u32 = 50;

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/projects/{project}/cases", get(page))
}

#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(default)]
struct Filter {
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    q: Option<String>,
    #[serde(flatten)]
    place: Place,
}

impl Filter {
    /// Returns whether it selects all test cases.
    fn is_everything(&self) -> bool {
        self.q.is_none() && self.place.is_anywhere()
    }
}

async fn page(
    Session { api, user }: Session,
    Path(id): Path<Uuid>,
    Query(query): Query<Paged<Filter>>,
) -> Result<impl IntoResponse, Failure> {
    let project = format!("/api/projects/{id}");
    let (cases, listed) = (format!("{project}/testcases"), query.listed(CASES));
    let (project, cases) =
        try_join!(api.get::<Project>(&project, &()), api.list::<TestCaseEntry>(&cases, &listed))?;
    let path = format!("/projects/{id}/cases");
    let body = html! {
        div.head { h1 { "Test cases" } }
        (filters(&path, &query.filter))
        @if cases.items.is_empty() { (query.nothing(nothing(&query.filter))) }
        ul.rows.spaced { @for case in &cases.items { (case_row(case)) } }
        (query.pager(&path, cases.next.as_deref()))
    };
    let title = format!("Test cases · {}", project.name);
    let trail = below_project(&project);
    Ok(Page { user: &user, title, trail, body }.into_response())
}

fn nothing(filter: &Filter) -> &'static str {
    if filter.is_everything() {
        "This project has no test cases yet. Results that are uploaded create them."
    } else {
        "No test case matches these filters."
    }
}

fn filters(path: &str, filter: &Filter) -> Markup {
    html! {
        form.filters role="search" action=(path) {
            label.field.wide {
                span { "Test case" }
                input type="search" name="q" value=(clean(filter.q.as_deref().unwrap_or_default()));
            }
            (filter.place.fields())
            button { "Filter" }
            @if !filter.is_everything() {
                a.button.quiet href=(path) { "Clear" }
            }
        }
    }
}

/// A search in the test cases of the path.
pub(super) fn search(path: &str, q: Option<&str>) -> Markup {
    html! {
        form.search role="search" action=(path) {
            input type="search" name="q" aria-label="Search test cases"
                placeholder="Search test cases" value=(clean(q.unwrap_or_default()));
            button { "Search" }
        }
    }
}

/// A test case as a row of a list.
pub(super) fn case_row(case: &TestCaseEntry) -> Markup {
    let outcomes: Vec<_> = case.execution_statistics.iter().rev().map(|run| run.result).collect();
    html! {
        li.row.test {
            span.mark { (glyph(case.last_result.unwrap_or(Outcome::Absent))) }
            span.what {
                a href=(format!("/cases/{}", case.id)) { bdi { (plain(&case.name)) } }
                (place(&case.identifier, &case.name))
            }
            span.marks {}
            span.history { @if !outcomes.is_empty() { (strip(&outcomes)) } }
            span.time {}
        }
    }
}
