//! The reporting interface of ReportPortal, with its own paths and errors, so that its agents report
//! to Assay unchanged. It is not part of the documented interface.

mod form;
mod items;
mod launches;
mod reporter;
mod users;

use assay_auth::Caller;
use axum::{
    Json, Router,
    extract::Request,
    routing::{get, post, put},
};
use serde_json::{Value, json};

use crate::{
    body::{self, Bounds, FieldFilter, JsonBody},
    problem::{
        Problem,
        reportportal::{INFO, VERSIONS},
    },
    services::Services,
};

/// The version of ReportPortal whose behaviour agents expect: they send times in microseconds.
const VERSION: &str = "5.14.0";

/// Returns the routes.
pub(crate) fn routes() -> Router<Services> {
    VERSIONS.iter().fold(Router::new().route(INFO, get(info)), |routes, version| {
        let path = |path: &str| format!("{version}/{{project}}/{path}");
        routes
            .route(&format!("{version}/user"), get(users::current))
            .route(&path("settings"), get(settings))
            .route(&path("launch"), post(launches::start).get(launches::list))
            .route(&path("launch/merge"), post(launches::merge))
            .route(&path("launch/uuid/{launch}"), get(launches::find))
            .route(&path("launch/{launch}/finish"), put(launches::finish))
            .route(&path("launch/{launch}/stop"), put(launches::finish))
            .route(&path("launch/{launch}/update"), put(launches::update))
            .route(&path("item"), post(items::start))
            .route(&path("item/"), post(items::start))
            .route(&path("item/{item}"), post(items::start_child).put(items::finish))
            .route(&path("log"), post(items::log))
            .route(&path("log/entry"), post(items::log))
    })
}

async fn info() -> Json<Value> {
    Json(json!({
        "build": { "version": VERSION, "name": "Assay" },
        "environment": {},
        "extensions": { "result": {} },
    }))
}

/// Returns the defect types of a project. Without them, pytest fails.
async fn settings(_: Caller) -> Json<Value> {
    Json(json!({ "project": 1, "subTypes": {} }))
}

/// Reads a JSON body.
async fn body_of(request: Request) -> Result<bytes::Bytes, Problem> {
    let body = body::read_filtered(FieldFilter::default(), Bounds::RECORDS, request).await?;
    Ok(body.map_or_else(|| b"{}".to_vec(), JsonBody::into_bytes).into())
}
