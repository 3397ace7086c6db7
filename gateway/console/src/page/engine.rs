//! `/engines`: the engines that run tests, and the work that waits for them.

use axum::{Router, extract::Query, response::IntoResponse, routing::get};
use futures::try_join;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::paged::Paged;
use crate::{
    api::Console,
    failure::Failure,
    layout::{Crumb, Page},
    record::{Engine, Queue, QueuePool, Queues},
    session::Session,
    text::{counted, long_time, plain},
};

const PAGE: u32 = 100;

/// Maximum number of queues that the interface returns.
const QUEUES: usize = 1000;

/// Number of leases of an engine that are shown.
const LEASES: usize = 10;

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/engines", get(page))
}

/// The list has no filters.
#[derive(Clone, Default, Deserialize, Serialize)]
struct NoFilter {}

async fn page(
    Session { api, user }: Session,
    Query(query): Query<Paged<NoFilter>>,
) -> Result<impl IntoResponse, Failure> {
    let listed = query.listed(PAGE);
    let (engines, queues) = try_join!(
        api.list::<Engine>("/api/engines", &listed),
        api.get::<Queues>("/api/queues", &()),
    )?;
    let body = html! {
        div.head { h1 { "Engines" } }
        h2 { "Waiting tests" }
        @if queues.items.is_empty() { p.empty { "No test waits for an engine." } }
        ul.cards { @for queue in &queues.items { (waiting(queue)) } }
        @if queues.items.len() == QUEUES { p.hint { "Only " (QUEUES) " queues are shown." } }
        h2 { "Engines of the last seven days" }
        @if engines.items.is_empty() {
            (query.nothing("No engine has asked for work."))
        }
        ul.cards { @for engine in &engines.items { (card(engine)) } }
        (query.pager("/engines", engines.next.as_deref()))
    };
    let title = "Engines".to_owned();
    let trail = vec![Crumb("/".to_owned(), html! { "Projects" })];
    Ok(Page { user: &user, title, trail, body }.into_response())
}

fn waiting(queue: &Queue) -> Markup {
    html! {
        li.card {
            b { (counted(queue.queued, "test")) } " since " (long_time(queue.queued_since))
            p.small {
                @if queue.labels.is_empty() { "No label needed" } @else { (labels(&queue.labels)) }
                @if queue.environment_id.is_some() { " · one at a time, in an exclusive environment" }
                @if !queue.pools.is_empty() { " · with a value of " (pools(&queue.pools)) }
            }
        }
    }
}

fn card(engine: &Engine) -> Markup {
    let group = Some(&engine.target_group).filter(|group| !group.is_empty());
    let all: Vec<String> = group.into_iter().chain(&engine.labels).cloned().collect();
    html! {
        li.card {
            b { bdi { (plain(&engine.name)) } } " " span.badge.none { (engine.state) }
            p.small {
                "Last seen " (long_time(engine.last_seen_time))
                @if !engine.version.is_empty() { " · version " bdi { (plain(&engine.version)) } }
                @if !all.is_empty() { " · " (labels(&all)) }
                @if !engine.project_ids.is_empty() { " · only for " (projects(engine)) }
            }
            @if !engine.leases.is_empty() {
                ul.small { @for lease in engine.leases.iter().take(LEASES) {
                    li {
                        a href=(format!("/reports/{}", lease.test_report_id)) {
                            bdi { (plain(&lease.test_case_identifier)) }
                        }
                        " since " (long_time(lease.lease_time))
                    }
                } }
                @if engine.leases.len() > LEASES {
                    p.small { "and " (engine.leases.len() - LEASES) " more" }
                }
            }
        }
    }
}

fn pools(pools: &[QueuePool]) -> Markup {
    html! { @for (nr, pool) in pools.iter().enumerate() {
        @if nr > 0 { ", " }
        a href=(format!("/projects/{}/pools/{}", pool.project_id, pool.id)) { bdi { (plain(&pool.name)) } }
    } }
}

/// Returns the number of projects to which an engine is restricted.
fn projects(engine: &Engine) -> String {
    counted(i64::try_from(engine.project_ids.len()).unwrap_or(i64::MAX), "project")
}

fn labels(labels: &[String]) -> Markup {
    html! { @for (nr, label) in labels.iter().enumerate() {
        @if nr > 0 { ", " }
        bdi { (plain(label)) }
    } }
}
