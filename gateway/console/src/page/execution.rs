//! `/executions/{executionId}`: the results of one execution, new failures first.

mod causes;
mod comparison;
mod estimate;
mod export;
mod filter;
mod header;
mod list;
mod listing;
mod path;
mod results;
mod runs;
mod undo;

use axum::{
    Form, Router,
    extract::{Path, Query},
    http::HeaderMap,
    response::{Html, IntoResponse, Redirect, Response},
    routing::{get, post},
};
use futures::try_join;
use http::header::ETAG;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use self::runs::Runs;
pub(super) use self::{
    filter::{Filter, Tab},
    header::{legend, sentence, tabs},
    listing::Listing,
    path::{Place, path},
    results::results,
};
use super::{
    paged::Paged,
    part::below_set,
    review::{self, Announcement, Entry, Scope},
    row::Rows,
};
use crate::{
    api::{Api, Console, List, address},
    failure::Failure,
    layout::Page,
    record::{FailureMatch, Position, Project, Summary, Verdict},
    session::Session,
    text::number,
};

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/executions/{execution}", get(page).post(judge))
        .route("/executions/{execution}/progress", get(progress))
        .route("/executions/{execution}/comparison", get(comparison::page))
        .route("/executions/{execution}/undo", post(undo::undo))
        .merge(export::routes())
}

/// Number of test cases that a cause is shown to have made fail.
const MATCHES: u32 = 50;

async fn page(
    session: Session,
    Path(id): Path<Uuid>,
    Query(query): Query<Paged<Filter>>,
    Query(announcement): Query<Announcement>,
) -> Result<Response, Failure> {
    show(&session, id, &query, &announcement, &Entry::default()).await
}

/// Judges test reports of the list, and shows it again.
async fn judge(
    session: Session,
    Path(id): Path<Uuid>,
    Query(query): Query<Paged<Filter>>,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Result<Response, Failure> {
    let filter = query.filter.of_interface(query.filter.explicit_tab().unwrap_or(Tab::All));
    let entry = Entry::read(pairs).among(filter.change, filter.muted);
    match entry.send(&session.api, &path(id), None).await? {
        Ok(reviewed) => {
            let here = address(&format!("/executions/{id}"), &query);
            Ok(Redirect::to(&reviewed.announced_on(&here)).into_response())
        }
        Err(entry) => {
            let page = show(&session, id, &query, &Announcement::default(), &entry).await?;
            Ok((entry.refusal(), page).into_response())
        }
    }
}

async fn show(
    Session { api, user }: &Session,
    id: Uuid,
    query: &Paged<Filter>,
    announcement: &Announcement,
    entry: &Entry,
) -> Result<Response, Failure> {
    let summary = api.get::<Summary>(&format!("{}/summary", path(id)), &()).await?;
    let (filter, tab) = (&query.filter, query.filter.tab(&summary.changes));
    let verdict_path = format!("{}/verdict", path(id));
    let may_review = review::may_review(user);
    let place = Place::of(id);
    let is_running = summary.execution.is_running();
    let listing = Listing { place: &place, tab, query, changes: summary.changes, is_running };
    let ((project, usual), verdict, results, matches, last, runs) = try_join!(
        project(api, &summary, query),
        api.get::<Verdict>(&verdict_path, &()),
        results(api, listing, may_review),
        matches(api, &summary, filter.fingerprint.as_deref().filter(|_| may_review)),
        last(api, id, announcement, query),
        series(api, &summary, query),
    )?;

    let execution = &summary.execution;
    let rows =
        Rows { judged: may_review.then_some(entry), project: Some(&project), ..Rows::default() };
    let scope = matches.as_ref().map_or(Scope::Selected, Scope::Cause);
    let body = html! {
        (header::header(&summary, Some(&verdict), tab, query, usual))
        @if is_running { (running(&address(&place.page, query))) }
        (runs::strip(execution, &runs))
        (announcement.show(&id.to_string(), &format!("/executions/{id}?{}", query.encode(tab))))
        @if let Some(last) = last { (end_of_walk(&last)) }
        (results.section(listing, rows))
        (review::form(user, &format!("/executions/{id}?{}", query.encode(tab)), scope, entry))
    };
    let trail = below_set(&project, &execution.test_set_id, &execution.test_set_name);
    let title = header::title(&summary);
    Ok(Page { user, title, trail, body }.into_response())
}

/// Returns the runs of the series, unless the page is about a cause, which needs another call.
async fn series(api: &Api, summary: &Summary, query: &Paged<Filter>) -> Result<Runs, Failure> {
    if query.filter.fingerprint.is_some() {
        return Ok(Runs::default());
    }
    runs::read(api, summary).await
}

/// Returns the project of an execution and, while it is running, how long it usually takes, in seconds, unless the
/// page is about a cause.
async fn project(
    api: &Api,
    summary: &Summary,
    query: &Paged<Filter>,
) -> Result<(Project, Option<f64>), Failure> {
    let path = format!("/api/projects/{}", summary.project_id);
    let project = api.get::<Project>(&path, &()).await?;
    let usual = match &query.filter.fingerprint {
        Some(_) => None,
        None => estimate::usual_duration(api, summary, &project.default_branch).await?,
    };
    Ok((project, usual))
}

/// Returns the test cases that a cause has made fail.
async fn matches(
    api: &Api,
    summary: &Summary,
    fingerprint: Option<&str>,
) -> Result<Option<List<FailureMatch>>, Failure> {
    let Some(fingerprint) = fingerprint else { return Ok(None) };
    let path = format!("/api/projects/{}/failures/{fingerprint}/testcases", summary.project_id);
    api.list(&path, &[("limit", MATCHES)]).await.map(Some)
}

/// The facts that the header of a running execution has from its page.
#[derive(Deserialize)]
struct Shown {
    /// How long the execution usually takes, in seconds.
    #[serde(default)]
    usual: Option<f64>,
}

/// Shows the header of a running execution, which its page replaces every few seconds.
async fn progress(
    Session { api, .. }: Session,
    Path(id): Path<Uuid>,
    Query(query): Query<Paged<Filter>>,
    Query(Shown { usual }): Query<Shown>,
) -> Result<Response, Failure> {
    let (summary, tag) = api.get_tagged::<Summary>(&format!("{}/summary", path(id))).await?;
    let tab = query.filter.tab(&summary.changes);
    let mut headers = HeaderMap::new();
    headers.extend(tag.and_then(|tag| estimate::tag_of_minute(&tag)).map(|tag| (ETAG, tag)));
    let header = header::header(&summary, None, tab, &query, usual).into_string();
    Ok((headers, Html(header)).into_response())
}

/// The place in which the script says what is new, and a link for browsers without scripts.
fn running(here: &str) -> Markup {
    html! {
        p #news role="status" hidden {}
        noscript { p { a.button href=(here) { "Refresh" } } }
    }
}

/// Returns the position of the last test of a list, if the page shows the list after it.
async fn last(
    api: &Api,
    id: Uuid,
    announcement: &Announcement,
    query: &Paged<Filter>,
) -> Result<Option<Position>, Failure> {
    let last = announcement.last.as_deref().and_then(|last| last.parse().ok());
    let Some(last) = last else { return Ok(None) };
    position(api, id, last, query).await.map(Some)
}

fn end_of_walk(last: &Position) -> Markup {
    html! {
        p.done role="status" {
            "That was the last one: " (number(last.reviewed)) " of " (number(last.total)) " reviewed."
        }
    }
}

/// Returns the position of a test report in the list of this query.
pub(super) async fn position(
    api: &Api,
    id: Uuid,
    report: Uuid,
    query: &Paged<Filter>,
) -> Result<Position, Failure> {
    #[derive(Serialize)]
    struct List {
        #[serde(rename = "byCause")]
        by_cause: bool,
        #[serde(flatten)]
        filter: Filter,
    }
    // Without a change in its filter, the list is not one of causes.
    let tab = query.filter.explicit_tab().unwrap_or(Tab::All);
    let by_cause = query.filter.is_grouped(tab);
    let list = List { by_cause, filter: query.filter.of_interface(tab) };
    api.get(&format!("{}/reports/{report}/position", path(id)), &list).await
}
