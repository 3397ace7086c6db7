//! `/shared/{token}`: an execution for readers with its share link, who need no account.

mod report;

use axum::{
    Router,
    extract::{FromRequestParts, Path, Query},
    response::Response,
    routing::get,
};
use http::request::Parts;
use maud::{Markup, html};

use super::{
    execution::{Filter, Listing, Place, legend, results, sentence, tabs},
    paged::Paged,
    part::{facts, result_badge, revision, subject, taken_by_tests},
    row::Rows,
};
use crate::{
    api::{Api, Console, address},
    chart::bar,
    failure::Failure,
    layout,
    record::{ExecutionStatus, SharedExecution, VerdictState},
    text::{long_time, plain, time_before},
};

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/shared/{token}", get(page))
        .route("/shared/{token}/reports/{report}", get(report::page))
        .route("/shared/{token}/reports/{report}/content", get(report::content))
}

/// The interface for a reader without an account.
struct Visitor(Api);

impl FromRequestParts<Console> for Visitor {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Failure> {
        Ok(Self(Api::new(console, parts, None)))
    }
}

async fn page(
    Visitor(api): Visitor,
    Path(token): Path<String>,
    Query(query): Query<Paged<Filter>>,
) -> Result<Response, Failure> {
    let place = Place::shared(&token);
    let execution = api.get::<SharedExecution>(&place.api, &()).await?;
    let tab = query.filter.tab(&execution.changes);
    let is_running = execution.is_running();
    let changes = execution.changes;
    let listing = Listing { place: &place, tab, query: &query, changes, is_running };
    let results = results(&api, listing, false).await?;
    let body = html! {
        header #summary {
            div.head {
                h1 { bdi { (plain(&execution.test_set_name)) } }
                (result_badge(execution.result, state(&execution)))
            }
            (sentence(&place.page, &execution.changes, &execution.statistic, &gate(&execution)))
            (facts_of(&execution))
            (bar(&execution.statistic))
            (legend(&place.page, &execution.statistic, &html! {}))
            (tabs(&place.page, &execution.changes, &execution.statistic, tab))
        }
        @if is_running { p { a.button href=(address(&place.page, &query)) { "Refresh" } } }
        (results.section(listing, Rows::default()))
    };
    Ok(layout::open(&execution.test_set_name, &body))
}

fn state(execution: &SharedExecution) -> &'static str {
    let SharedExecution { status, result, .. } = *execution;
    if status == ExecutionStatus::Completed { result.summary() } else { status.name() }
}

fn gate(execution: &SharedExecution) -> Markup {
    html! {
        @match execution.verdict {
            VerdictState::Passed => span.badge.pass { "Gate passed" },
            VerdictState::Failed => span.badge.fail { "Gate failed" },
            _ => {},
        }
    }
}

fn facts_of(execution: &SharedExecution) -> Markup {
    let some = |text: &'_ str| (!text.is_empty()).then(|| text.to_owned());
    let (branch, commit) = (some(&execution.branch), some(&execution.commit));
    let revision = revision(branch.as_deref(), commit.as_deref());
    let subject = subject(Some(&execution.software_name), Some(&execution.software_version));
    let running_since = execution.is_running().then_some(execution.request_time);
    html! {
        p.facts {
            span.fact { (long_time(execution.request_time)) }
            span.fact { (taken_by_tests(execution.duration_in_sec, running_since)) }
            (facts([revision.as_deref(), Some(&execution.environment_name), subject.as_deref()]))
            span.fact { "shared until " (time_before(execution.expires_at)) }
        }
    }
}
