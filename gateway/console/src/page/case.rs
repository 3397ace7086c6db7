//! `/cases/{testCaseId}`: the runs of a test case.

mod digest;

use axum::{
    Form, Router,
    extract::{Path, Query},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use futures::try_join;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use self::digest::Digest;
use super::{
    case_state::{self, CaseState, Entry},
    classification,
    paged::{Paged, cut, unless_empty},
    part::{OF_TEST, below_project, facts, revision, subject, text_field},
};
use crate::{
    api::{Api, Console, List, address},
    chart::{Quartiles, box_plot, dated, durations, flaky, glyph},
    failure::Failure,
    layout::Page,
    page::row::identifier,
    record::{Outcome, Project, TestCase, TestCaseRun, TestSetEntry},
    session::Session,
    text::{duration, plain, short_time, taken},
};

/// Number of runs on a page.
const RUNS: u32 = 50;

/// Maximum number of test sets with links.
const SETS: u32 = 20;

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/cases/{case}", get(page)).route("/cases/{case}/state", post(change_state))
}

/// The runs to show, as the interface names them.
#[derive(Clone, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Filter {
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    test_set_id: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    environment_id: Option<String>,
}

async fn page(
    session: Session,
    Path(id): Path<Uuid>,
    Query(query): Query<Paged<Filter>>,
) -> Result<Response, Failure> {
    show(&session, &case(&session.api, id).await?, &query, &Entry::default()).await
}

/// Sets the state of the test case, and shows it again.
async fn change_state(
    session: Session,
    Path(id): Path<Uuid>,
    Query(query): Query<Paged<Filter>>,
    Form(entry): Form<Entry>,
) -> Result<Response, Failure> {
    let case = case(&session.api, id).await?;
    match entry.send(&session.api, &case.project_id, id).await? {
        None => Ok(Redirect::to(&address(&format!("/cases/{id}"), &query)).into_response()),
        Some(refused) => {
            let page = show(&session, &case, &query, &refused).await?;
            Ok((refused.status(), page).into_response())
        }
    }
}

async fn case(api: &Api, id: Uuid) -> Result<TestCase, Failure> {
    api.get::<TestCase>(&format!("/api/projects/0/testcases/{id}"), &()).await
}

async fn show(
    Session { api, user }: &Session,
    case: &TestCase,
    query: &Paged<Filter>,
    entry: &Entry,
) -> Result<Response, Failure> {
    let project = format!("/api/projects/{}", case.project_id);
    let at = format!("{project}/testcases/{}", case.id);
    let (history, sets) = (format!("{at}/history"), format!("{at}/testsets"));
    let state = case_state::path(&case.project_id, &case.id);
    let listed = query.listed(RUNS);
    let (project, runs, sets, state) = try_join!(
        api.get::<Project>(&project, &()),
        api.list::<TestCaseRun>(&history, &listed),
        api.list::<TestSetEntry>(&sets, &[("limit", SETS)]),
        api.get::<CaseState>(&state, &()),
    )?;
    let body = html! {
        div.head { h1 { bdi { (plain(&case.name)) } } }
        (identifier(&case.identifier, &case.name))
        @if let Some(description) = &case.description { p.lead { (plain(description)) } }
        (classification::shown(&case.classification, &format!("/projects/{}/cases", case.project_id)))
        (sets_of(case, &sets))
        @let path = address(&format!("/cases/{}/state", case.id), query);
        (case_state::shown(&state, user, entry, &path, &project))
        @let is_filtered = query.filter != Filter::default();
        @if is_filtered || !runs.items.is_empty() { (filters(case, &query.filter)) }
        @if runs.items.is_empty() {
            p.empty { (nothing(is_filtered, query.cursor.is_some())) }
            (query.pager(&format!("/cases/{}", case.id), None))
        }
        @else {
            // It is about the latest runs, which the first page has.
            @if query.cursor.is_none() { (Digest::of(&runs.items, &project.default_branch).summary()) }
            (overview(&runs.items, query.cursor.is_none()))
            (digest::causes(&runs.items, &case.project_id))
            (history_of(case, &runs, query))
        }
    };
    let (title, trail) = (case.name.clone(), below_project(&project));
    Ok(Page { user, title, trail, body }.into_response())
}

fn nothing(is_filtered: bool, is_later_page: bool) -> &'static str {
    match (is_later_page, is_filtered) {
        (true, _) => "No run follows those of the pages before.",
        (false, true) => "No run matches these filters.",
        (false, false) => "This test has not been executed yet.",
    }
}

fn filters(case: &TestCase, filter: &Filter) -> Markup {
    let path = format!("/cases/{}", case.id);
    let hidden = [("testSetId", &filter.test_set_id), ("environmentId", &filter.environment_id)];
    html! {
        form.filters action=(path) {
            (text_field("branch", "Branch", filter.branch.as_deref()))
            @for (name, value) in hidden {
                @if let Some(value) = value { input type="hidden" name=(name) value=(value); }
            }
            button { "Filter" }
            @if *filter != Filter::default() { a.button.quiet href=(path) { "Clear" } }
        }
    }
}

fn sets_of(case: &TestCase, sets: &List<TestSetEntry>) -> Markup {
    html! {
        @if !sets.items.is_empty() {
            p.facts { @for set in &sets.items {
                span.fact { a href=(format!("/projects/{}/sets/{}", case.project_id, set.id)) {
                    bdi { (plain(&set.name)) }
                } }
            } }
            (cut(sets, "test set", None))
        }
    }
}

/// Durations and results of the runs, and how much they vary.
fn overview(runs: &[TestCaseRun], are_latest: bool) -> Markup {
    let timed = runs.iter().rev().map(|run| (run.total_duration_in_sec, run.result));
    let timed: Vec<_> = timed.collect();
    let passed = runs.iter().filter(|run| run.result == Outcome::Passed);
    let quartiles = Quartiles::of(passed.clone().map(|run| run.total_duration_in_sec).collect());
    let flakiness = runs.first().map_or(0.0, |run| run.flakiness_score);
    html! {
        section.charts {
            figure {
                figcaption title=(OF_TEST) {
                    @if are_latest { "Durations of the latest runs" } @else { "Durations of these runs" }
                    @if let (Some(last), Some(first)) = (runs.first(), runs.last()) {
                        ", from " (short_time(first.request_time)) " to " (short_time(last.request_time))
                    }
                    "; marked below if they did not pass"
                }
                (durations(&timed))
                div.dates aria-hidden="true" {
                    @for run in dated(runs.len()) {
                        @let run = run.and_then(|run| runs.iter().rev().nth(run));
                        span { @if let Some(run) = run { (short_time(run.request_time)) } }
                    }
                }
            }
            @if let Some(quartiles) = quartiles { (distribution(&quartiles)) }
        }
        dl.numbers {
            div { dt { "Runs shown" } dd { (runs.len()) } }
            div { dt { "Passed" } dd { (passed.count()) } }
            div { dt { "Flakiness" } dd { (format!("{:.0} %", 100.0 * flakiness)) } }
        }
    }
}

fn distribution(quartiles: &Quartiles) -> Markup {
    html! {
        figure {
            figcaption title=(OF_TEST) { "Durations of passed runs" }
            (box_plot(quartiles))
            dl.numbers.small {
                div { dt { "Shortest" } dd { (duration(quartiles.shortest())) } }
                div { dt { "25 %" } dd { (duration(quartiles.first_quartile)) } }
                div { dt { "Median" } dd { (duration(quartiles.median)) } }
                div { dt { "75 %" } dd { (duration(quartiles.third_quartile)) } }
                div { dt { "Longest" } dd { (duration(quartiles.longest())) } }
            }
        }
    }
}

fn history_of(case: &TestCase, runs: &List<TestCaseRun>, query: &Paged<Filter>) -> Markup {
    let path = format!("/cases/{}", case.id);
    html! {
        h2 { "Runs" }
        ol.rows { @for run in &runs.items { (run_row(run)) } }
        (query.pager(&path, runs.next.as_deref()))
    }
}

fn run_row(run: &TestCaseRun) -> Markup {
    let subject = subject(run.software_name.as_deref(), run.software_version.as_deref());
    let revision = revision(run.branch.as_deref(), run.commit.as_deref());
    let is_judged = run.status.is_judged();
    html! {
        li.row.past {
            span.mark {
                @if run.is_flaky && run.result == Outcome::Passed { (flaky()) }
                @else { (glyph(run.result)) }
            }
            span.what {
                a href=(format!("/reports/{}", run.id)) { (short_time(run.request_time)) }
                span.facts {
                    (facts([
                        revision.as_deref(),
                        Some(run.test_set_name.as_str()),
                        run.environment_name.as_deref(),
                        subject.as_deref(),
                    ]))
                }
            }
            span.marks { @if is_judged { span.badge.none { (run.status) } } }
            span.time title=(OF_TEST) { (taken(run.result, run.total_duration_in_sec)) }
        }
    }
}
