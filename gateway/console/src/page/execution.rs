//! `/executions/{executionId}`: the results of one execution, new failures first.

mod causes;
mod filter;
mod header;
mod list;

use axum::{
    Router,
    extract::{Path, Query},
    http::HeaderMap,
    response::{Html, IntoResponse, Response},
    routing::get,
};
use futures::try_join;
use http::header::ETAG;
use maud::{Markup, html};
use uuid::Uuid;

pub(super) use self::filter::{Filter, Tab};
use super::{
    part::below_set,
    review::{self, Announcement, Scope},
};
use crate::{
    Console,
    api::{Api, Project, Summary, Verdict},
    failure::Failure,
    layout::Page,
    session::{Claims, Session},
};

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/executions/{execution}", get(page))
        .route("/executions/{execution}/progress", get(progress))
}

/// Returns the path of an execution in the interface, for those who do not know its project.
pub(super) fn path(id: Uuid) -> String {
    format!("/api/projects/0/executions/{id}")
}

async fn page(
    Session { api, user }: Session,
    Path(id): Path<Uuid>,
    Query(filter): Query<Filter>,
    Query(announcement): Query<Announcement>,
) -> Result<impl IntoResponse, Failure> {
    let summary = api.get::<Summary>(&format!("{}/summary", path(id)), &()).await?;
    let tab = filter.tab(&summary.changes);
    let verdict_path = format!("{}/verdict", path(id));
    let (project, verdict, results) = try_join!(
        project(&api, &summary),
        api.get::<Verdict>(&verdict_path, &()),
        results(&api, &user, tab, &filter, &summary),
    )?;

    let execution = &summary.execution;
    let body = html! {
        (header::header(&summary, Some(&verdict), tab, &filter))
        (announcement.show())
        (results)
        (review_form(&user, &summary, tab, &filter))
    };
    let trail = below_set(&project, &execution.test_set_id, &execution.test_set_name);
    let refresh = execution.is_running().then_some(5);
    let title = header::title(&summary);
    Ok(Page { user: &user, title, trail, refresh, body }.into_response())
}

async fn project(api: &Api, summary: &Summary) -> Result<Project, Failure> {
    api.get(&format!("/api/projects/{}", summary.project_id), &()).await
}

async fn results(
    api: &Api,
    user: &Claims,
    tab: Tab,
    filter: &Filter,
    summary: &Summary,
) -> Result<Markup, Failure> {
    let id = summary.execution.id.parse().map_err(|_| Failure::internal())?;
    let selectable = review::may_review(user);
    if filter.is_grouped(tab) {
        Ok(causes::read(api, id, tab, filter).await?.section(id, tab, filter, selectable))
    } else {
        list::section(api, id, tab, filter, summary, selectable).await
    }
}

/// The form that judges the selected tests.
fn review_form(user: &Claims, summary: &Summary, tab: Tab, filter: &Filter) -> Markup {
    let id = &summary.execution.id;
    let next = format!("/executions/{id}?{}", filter.query(tab));
    let scope = filter.fingerprint.as_deref().map_or(Scope::Selected, Scope::Cause);
    review::form(user, id, &next, scope)
}

/// Shows the header of a running execution, which its page replaces every few seconds.
async fn progress(
    Session { api, .. }: Session,
    Path(id): Path<Uuid>,
    Query(filter): Query<Filter>,
) -> Result<Response, Failure> {
    let (summary, tag) = api.get_tagged::<Summary>(&format!("{}/summary", path(id))).await?;
    let tab = filter.tab(&summary.changes);
    let mut headers = HeaderMap::new();
    headers.extend(tag.map(|tag| (ETAG, tag)));
    let header = header::header(&summary, None, tab, &filter).into_string();
    Ok((headers, Html(header)).into_response())
}

/// Returns the ids of the test reports that a list shows, in its order, and the filter of the next
/// page.
pub(super) async fn order(
    api: &Api,
    id: Uuid,
    filter: &Filter,
) -> Result<(Vec<String>, Option<Filter>), Failure> {
    // Without a change in its filter, the list is not one of causes.
    let tab = filter.explicit_tab().unwrap_or(Tab::All);
    if filter.is_grouped(tab) {
        Ok(causes::order(api, id, tab, filter).await?)
    } else {
        list::order(api, id, tab, filter).await
    }
}
