//! `/cases/{testCaseId}`: the runs of a test case.

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
    classification,
    paged::Paged,
    part::{below_project, facts, subject},
};
use crate::{
    api::{Console, List},
    chart::{Quartiles, box_plot, durations, flaky, glyph},
    failure::Failure,
    layout::Page,
    page::row::identifier,
    record::{Outcome, Project, TestCase, TestCaseRun, TestSetEntry},
    session::Session,
    text::{duration, plain, short_time},
};

/// Number of runs on a page.
const RUNS: u32 = 50;

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/cases/{case}", get(page))
}

async fn page(
    Session { api, user }: Session,
    Path(id): Path<Uuid>,
    Query(query): Query<Paged<()>>,
) -> Result<impl IntoResponse, Failure> {
    let case = api.get::<TestCase>(&format!("/api/projects/0/testcases/{id}"), &()).await?;
    let project = format!("/api/projects/{}", case.project_id);
    let (history, sets) =
        (format!("{project}/testcases/{id}/history"), format!("{project}/testcases/{id}/testsets"));
    let listed = query.listed(RUNS);
    let (project, runs, sets) = try_join!(
        api.get::<Project>(&project, &()),
        api.list::<TestCaseRun>(&history, &listed),
        api.list::<TestSetEntry>(&sets, &[("limit", 20)]),
    )?;
    let body = html! {
        div.head { h1 { bdi { (plain(&case.name)) } } }
        (identifier(&case.identifier, &case.name))
        @if let Some(description) = &case.description { p.lead { (plain(description)) } }
        (classification::shown(&case.classification, &format!("/projects/{}/cases", case.project_id)))
        (sets_of(&case, &sets))
        @if runs.items.is_empty() { p.empty { "This test has not been executed yet." } }
        @else { (overview(&runs.items)) (history_of(&case, &runs, &query)) }
    };
    let (title, trail) = (case.name.clone(), below_project(&project));
    Ok(Page { user: &user, title, trail, refresh: None, body }.into_response())
}

fn sets_of(case: &TestCase, sets: &List<TestSetEntry>) -> Markup {
    html! {
        @if !sets.items.is_empty() {
            p.facts { @for set in &sets.items {
                span.fact { a href=(format!("/projects/{}/sets/{}", case.project_id, set.id)) {
                    bdi { (plain(&set.name)) }
                } }
            } }
        }
    }
}

/// Durations and results of the runs, and how much they vary.
fn overview(runs: &[TestCaseRun]) -> Markup {
    let timed = runs.iter().rev().map(|run| (run.total_duration_in_sec, run.result));
    let timed: Vec<_> = timed.collect();
    let passed = runs.iter().filter(|run| run.result == Outcome::Passed);
    let quartiles = Quartiles::of(passed.clone().map(|run| run.total_duration_in_sec).collect());
    let flakiness = runs.first().map_or(0.0, |run| run.flakiness_score);
    html! {
        section.charts {
            figure {
                figcaption { "Durations of the latest runs; marked below if they did not pass" }
                (durations(&timed))
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
            figcaption { "Durations of passed runs" }
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

fn history_of(case: &TestCase, runs: &List<TestCaseRun>, query: &Paged<()>) -> Markup {
    let path = format!("/cases/{}", case.id);
    html! {
        h2 { "Runs" }
        ol.rows { @for run in &runs.items { (run_row(run)) } }
        (query.pager(&path, runs.next.as_deref()))
    }
}

fn run_row(run: &TestCaseRun) -> Markup {
    let subject = subject(run.software_name.as_deref(), run.software_version.as_deref());
    let is_judged = matches!(run.status.as_str(), "Accepted" | "Rejected" | "Investigation");
    html! {
        li.row.past {
            span.mark {
                @if run.is_flaky && run.result == Outcome::Passed { (flaky()) }
                @else { (glyph(run.result)) }
            }
            span.what {
                a href=(format!("/reports/{}", run.id)) { (short_time(run.request_time)) }
                span.facts { (facts([run.environment_name.as_deref(), subject.as_deref()])) }
            }
            span.marks { @if is_judged { span.badge.none { (run.status) } } }
            span.time { (duration(run.total_duration_in_sec)) }
        }
    }
}
