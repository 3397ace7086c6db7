//! `…/item` and `…/log`: items that start and finish, and their logs.

use assay_auth::Caller;
use assay_proto::execution::{AddLaunchEntryRequest, LaunchEntryKind};
use axum::{
    Json,
    extract::{Request, State},
};
use http::StatusCode;
use serde_json::{Value, json};

use super::{body_of, form, reporter::Reporter};
use crate::{body::media_type, path::Path, problem::Problem, services::Launches};

/// An id in the answer to a request that creates something.
type Created = (StatusCode, Json<Value>);

pub(super) async fn start(
    launches: State<Launches>,
    Reporter(caller): Reporter,
    request: Request,
) -> Result<Created, Problem> {
    add(launches, &caller, LaunchEntryKind::Start, None, request).await.map(|id| created(&id))
}

pub(super) async fn start_child(
    launches: State<Launches>,
    Reporter(caller): Reporter,
    Path((_, parent)): Path<(String, String)>,
    request: Request,
) -> Result<Created, Problem> {
    add(launches, &caller, LaunchEntryKind::Start, Some(parent), request)
        .await
        .map(|id| created(&id))
}

pub(super) async fn finish(
    launches: State<Launches>,
    Reporter(caller): Reporter,
    Path((_, item)): Path<(String, String)>,
    request: Request,
) -> Result<Json<Value>, Problem> {
    let id = add(launches, &caller, LaunchEntryKind::Finish, Some(item), request).await?;
    let message = format!("Accepted finish request for test item ID = {id}");
    Ok(Json(json!({ "message": message })))
}

/// Stores a log as JSON, or several with their files in a form.
pub(super) async fn log(
    launches: State<Launches>,
    Reporter(caller): Reporter,
    request: Request,
) -> Result<Created, Problem> {
    if media_type(request.headers()).as_deref() == Some("multipart/form-data") {
        let ids = form::add_logs(launches.0, &caller, request).await?;
        let responses: Vec<Value> = ids.into_iter().map(|id| json!({ "id": id })).collect();
        return Ok((StatusCode::CREATED, Json(json!({ "responses": responses }))));
    }
    add(launches, &caller, LaunchEntryKind::Log, None, request).await.map(|id| created(&id))
}

async fn add(
    State(mut launches): State<Launches>,
    caller: &Caller,
    kind: LaunchEntryKind,
    item_id: Option<String>,
    request: Request,
) -> Result<String, Problem> {
    let body = body_of(request).await?;
    let entry = AddLaunchEntryRequest { kind: kind.into(), item_id, body };
    Ok(launches.add_launch_entry(caller.call(entry)).await?.into_inner().id)
}

fn created(id: &str) -> Created {
    (StatusCode::CREATED, Json(json!({ "id": id })))
}
