//! The gateway: the one documented HTTP interface in front of the services, and the console, which
//! uses it.
//!
//! It handles HTTP (routes, media types, status codes, caching, limits) and authenticates callers.
//! The services authorize and carry out requests.

mod address;
mod admission;
mod array;
mod body;
mod caller;
mod cause;
mod compression;
mod config;
mod contents;
mod cors;
mod declared;
mod document;
mod document_pools;
mod download;
mod edge;
mod entity_tag;
mod event_stream;
mod gathered;
mod host;
mod idempotency;
mod limit;
mod list;
mod nested;
mod openapi;
mod operation;
mod path;
mod problem;
mod query;
mod range;
mod rendering;
mod reportportal;
mod reset_password;
mod response;
mod routes;
mod services;
mod share_link;
mod telemetry;
mod testrail;
mod token;
mod tus;
mod update;
mod upload;

use std::net::SocketAddr;

use assay_runtime::{
    Runtime,
    http::{self, Connections},
};
use axum::{
    Router,
    middleware::map_response,
    routing::{any, get},
};
use tokio::{net::TcpListener, task::spawn_blocking};

pub use self::{
    config::{Config, EdgeConfig},
    cors::Origin,
    openapi::openapi,
    services::Upstream,
};
use self::{declared::Declared, edge::Edge, limit::Pace, problem::Problem, services::Services};

/// Starts the gateway, and returns the address that it serves.
pub async fn start(runtime: &Runtime, config: Config) -> anyhow::Result<SocketAddr> {
    telemetry::describe_metrics();
    let upstream = Upstream::connect(runtime, &config).await?;
    let listener = TcpListener::bind(config.edge.http_listen).await?;
    let EdgeConfig { connections, trusted_proxies, .. } = config.edge.clone();
    let connections = Connections::new(connections, trusted_proxies);
    // Routes are built with their documentation: on a thread that ends, so that its memory is given
    // back.
    let app = spawn_blocking(move || app(upstream, &config.edge)).await?;
    http::serve(runtime, listener, app, connections)
}

/// Returns the routes of the interface in front of these services.
pub fn app(upstream: Upstream, config: &EdgeConfig) -> Router {
    let (quick, of_quick) = routes::quick().split_for_parts();
    let (slow, of_slow) = routes::slow().split_for_parts();
    let declared = Declared::of([of_quick, of_slow]);
    let pages = openapi::documentation()
        .route("/reset-password", get(reset_password::page))
        .route("/livez", get(|| async { "ok" }))
        // Pages answer all other paths.
        .route("/api/{*path}", any(async || Problem::not_found()));
    let edge = Edge::new(config);
    let services = Services::new(upstream, config.calls_at_once(), declared);
    let console = config.console.then(|| {
        let api = edge::within(quick.clone()).with_state(services.clone());
        let console = edge.protect(assay_console::routes(api), Pace::Quick);
        console.layer(map_response(assay_console::explain))
    });
    let (quick, slow) = (edge.protect(quick, Pace::Quick), edge.protect(slow, Pace::Slow));
    let agents = edge.protect(reportportal::routes(), Pace::Reporting);
    let testrail = testrail::signed_in(edge.protect(testrail::routes(), Pace::Slow));
    let pages = edge.protect(pages, Pace::Slow);
    let app = quick.merge(slow).merge(agents).merge(testrail).merge(pages).with_state(services);
    app.merge(console.unwrap_or_default())
}
