//! `/projects/{projectId}/insights`: the test cases of a project that need attention.

mod row;

use axum::{
    Router,
    extract::{Path, Query},
    response::IntoResponse,
    routing::get,
};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use self::row::row;
use super::{
    branch::Branch,
    cases::case_row,
    paged::{Paged, unless_empty},
    part::below_project,
};
use crate::{
    api::{Api, Console, address},
    failure::Failure,
    layout::Page,
    record::{Insight, Project, TestCaseEntry},
    session::Session,
    text::clean,
};

/// Number of test cases on a page.
const CASES: u32 = 25;

/// Default number of days, and those to choose from.
const DAYS: &str = "14";
const PERIODS: [&str; 5] = ["1", "7", "14", "30", "90"];

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/projects/{project}/insights", get(page))
}

/// A reason why test cases need attention.
struct Kind {
    /// The name in URLs, and in the interface.
    name: &'static str,
    label: &'static str,
    explanation: &'static str,
}

const FLAKY: &str = "Flaky";
const SLOWER: &str = "Slower";

/// The name of a list of its own in the interface.
const NEVER_RUN: &str = "NeverRun";

/// The first kind is the default.
const KINDS: [Kind; 6] = [
    Kind {
        name: "NewlyFailing",
        label: "Newly failing",
        explanation: "Tests that began to fail in this time, and failed last.",
    },
    Kind {
        name: FLAKY,
        label: "Flaky",
        explanation: "Tests that passed after a failed attempt, or recovered at least twice.",
    },
    Kind {
        name: "MostFailed",
        label: "Most failed",
        explanation: "Tests that failed in this time, the most frequent first.",
    },
    Kind {
        name: "Slowest",
        label: "Slowest",
        explanation: "The tests with the longest average duration.",
    },
    Kind {
        name: SLOWER,
        label: "Slower",
        explanation: "Slow tests that take longer than before, in the same set, environment and branch.",
    },
    Kind {
        name: NEVER_RUN,
        label: "Never run",
        explanation: "Tests that no execution has finished, newest first.",
    },
];

#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(default)]
struct Filter {
    #[serde(deserialize_with = "unless_empty")]
    kind: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    days: Option<String>,
    #[serde(flatten)]
    branch: Branch,
}

/// The filter, as the interface names it.
#[derive(Clone, Serialize)]
struct Selected<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    days: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<&'a str>,
}

impl Filter {
    /// Returns the kind that the URL asks for.
    fn kind(&self) -> &'static Kind {
        let named = |kind: &&Kind| Some(kind.name) == self.kind.as_deref();
        KINDS.iter().find(named).unwrap_or(&KINDS[0])
    }

    /// Returns the filter of another kind.
    fn with(&self, kind: &Kind) -> Self {
        Self { kind: Some(kind.name.to_owned()), ..self.clone() }
    }
}

async fn page(
    Session { api, user }: Session,
    Path(id): Path<Uuid>,
    Query(query): Query<Paged<Filter>>,
) -> Result<impl IntoResponse, Failure> {
    let kind = query.filter.kind();
    let query = Paged { filter: query.filter.with(kind), cursor: query.cursor };
    let base = format!("/api/projects/{id}");
    let project = api.get::<Project>(&base, &()).await?;
    let branch = query.filter.branch.shown(&api, &format!("{base}/executions"), &project).await?;
    let selected =
        Selected { kind: kind.name, days: query.filter.days.as_deref(), branch: branch.as_deref() };
    let selected = Paged { filter: selected, cursor: query.cursor.clone() };
    let (rows, next) = rows(&api, &base, kind, &selected).await?;
    let path = format!("/projects/{id}/insights");
    let body = html! {
        div.head { h1 { "Insights" } }
        (tabs(&path, kind, &query.filter))
        @if kind.name != NEVER_RUN {
            (period(&path, kind, &query.filter, branch.as_deref(), &project))
        }
        p.hint { (kind.explanation) }
        @if rows.is_empty() { (query.nothing("No test matches this view.")) }
        ul.rows.spaced { @for row in &rows { (row) } }
        (query.pager(&path, next.as_deref()))
    };
    let title = format!("{} · {}", kind.label, project.name);
    let trail = below_project(&project);
    Ok(Page { user: &user, title, trail, body }.into_response())
}

/// Reads the rows of a page, and the cursor of the next one.
async fn rows(
    api: &Api,
    project: &str,
    kind: &Kind,
    query: &Paged<Selected<'_>>,
) -> Result<(Vec<Markup>, Option<String>), Failure> {
    if kind.name == NEVER_RUN {
        let query = Paged { filter: (), cursor: query.cursor.clone() };
        let path = format!("{project}/testcases/neverrun");
        let cases = api.list::<TestCaseEntry>(&path, &query.listed(CASES)).await?;
        return Ok((cases.items.iter().map(case_row).collect(), cases.next));
    }
    let path = format!("{project}/insights");
    let insights = api.list::<Insight>(&path, &query.listed(CASES)).await?;
    let rows = insights.items.iter().map(|insight| row(insight, kind, query.filter.branch));
    Ok((rows.collect(), insights.next))
}

fn tabs(path: &str, current: &Kind, filter: &Filter) -> Markup {
    html! {
        nav.tabs aria-label="Insights" {
            @for kind in &KINDS {
                a href=(address(path, &filter.with(kind)))
                    aria-current=[(kind.name == current.name).then_some("page")]
                { (kind.label) }
            }
        }
    }
}

/// The form that chooses the executions.
fn period(
    path: &str,
    kind: &Kind,
    filter: &Filter,
    branch: Option<&str>,
    project: &Project,
) -> Markup {
    let of = |branch| address(path, &Filter { branch, ..filter.with(kind) });
    let days = filter.days.as_deref().unwrap_or(DAYS);
    // An address may have another number.
    let other = Some(days).filter(|days| !PERIODS.contains(days));
    html! {
        form.filters action=(path) {
            input type="hidden" name="kind" value=(kind.name);
            label.field {
                span { "Days" }
                select name="days" {
                    @for period in PERIODS.into_iter().chain(other) {
                        option value=(clean(period)) selected[period == days] { (clean(period)) }
                    }
                }
            }
            (filter.branch.field(branch, project, of))
            button { "Filter" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_number_of_days_keeps_every_branch() {
        let project: Project =
            serde_json::from_value(serde_json::json!({"Id": "1", "Name": "Shop"})).unwrap();
        let filter: Filter = serde_urlencoded::from_str("days=7&everyBranch=yes").unwrap();
        let html = period("/", &KINDS[0], &filter, None, &project).into_string();
        assert!(html.contains("name=\"everyBranch\" value=\"yes\""), "{html}");
    }

    #[test]
    fn the_days_of_the_address_are_chosen() {
        let project: Project =
            serde_json::from_value(serde_json::json!({"Id": "1", "Name": "Shop"})).unwrap();
        let shown = |days: Option<&str>| {
            let filter = Filter { days: days.map(str::to_owned), ..Filter::default() };
            period("/", &KINDS[0], &filter, None, &project).into_string()
        };
        for (days, chosen) in [(None, "14"), (Some("7"), "7"), (Some("3"), "3")] {
            let html = shown(days);
            let option = format!("<option value=\"{chosen}\" selected>{chosen}</option>");
            assert!(html.contains(&option), "{html}");
            assert_eq!(html.matches(" selected").count(), 1, "{html}");
        }
    }
}
