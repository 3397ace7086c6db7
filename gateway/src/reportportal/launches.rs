//! `…/launch`: launches that start and finish.

use assay_auth::Caller;
use assay_proto::execution::{
    FindLaunchesRequest, FinishLaunchRequest, Launch, MergeLaunchesRequest, StartLaunchRequest,
    UpdateLaunchRequest,
};
use axum::{
    Extension, Json,
    extract::{Query, Request, State},
};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{body_of, reporter::Reporter};
use crate::{
    limit::RequestLimits, path::Path, problem::Problem, services::Launches, upload::UPLOAD_TIMEOUT,
};

pub(super) async fn start(
    State(mut launches): State<Launches>,
    Reporter(caller): Reporter,
    Extension(limits): Extension<RequestLimits>,
    Path(project): Path<String>,
    request: Request,
) -> Result<(StatusCode, Json<Value>), Problem> {
    limits.charge_launch(caller.customer).await?;
    let request = StartLaunchRequest { project, body: body_of(request).await? };
    let launch = launches.start_launch(caller.call(request)).await?.into_inner();
    Ok((StatusCode::CREATED, Json(rendered(&launch))))
}

/// Finishes a launch. `stop` names it by its number or id.
pub(super) async fn finish(
    State(mut launches): State<Launches>,
    Reporter(caller): Reporter,
    Path((_, launch)): Path<(String, String)>,
    request: Request,
) -> Result<Json<Value>, Problem> {
    let launch_id = if launch.parse::<i64>().is_ok() {
        one(&mut launches, &caller, launch).await?.id
    } else {
        launch
    };
    let request = FinishLaunchRequest { launch_id, body: body_of(request).await? };
    let request = caller.call_within(UPLOAD_TIMEOUT, request);
    let launch = launches.finish_launch(request).await?.into_inner();
    Ok(Json(rendered(&launch)))
}

/// Changes attributes and the description of a launch.
pub(super) async fn update(
    State(mut launches): State<Launches>,
    Reporter(caller): Reporter,
    Path((_, launch)): Path<(String, String)>,
    request: Request,
) -> Result<Json<Value>, Problem> {
    let launch = one(&mut launches, &caller, launch).await?;
    let request = UpdateLaunchRequest { launch_id: launch.id, body: body_of(request).await? };
    let launch = launches.update_launch(caller.call(request)).await?.into_inner();
    let message = format!("Launch with ID = '{}' successfully updated.", launch.id);
    Ok(Json(json!({ "message": message })))
}

pub(super) async fn find(
    State(mut launches): State<Launches>,
    Reporter(caller): Reporter,
    Path((_, launch)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(listed(&one(&mut launches, &caller, launch).await?)))
}

/// The filter of a list. Agents only look for launches that they have started.
#[derive(Deserialize)]
pub(super) struct Filter {
    #[serde(rename = "filter.in.uuid", alias = "filter.eq.uuid", default)]
    uuids: String,
}

pub(super) async fn list(
    State(mut launches): State<Launches>,
    Reporter(caller): Reporter,
    Query(Filter { uuids }): Query<Filter>,
) -> Result<Json<Value>, Problem> {
    let ids = uuids.split(',').map(|id| id.trim().to_owned()).filter(|id| !id.is_empty());
    let request = FindLaunchesRequest { ids: ids.collect(), numbers: Vec::new() };
    let found = launches.find_launches(caller.call(request)).await?.into_inner().launches;
    let content: Vec<Value> = found.iter().map(listed).collect();
    let count = content.len();
    let page = json!({ "number": 1, "size": count, "totalElements": count, "totalPages": 1 });
    Ok(Json(json!({ "content": content, "page": page })))
}

pub(super) async fn merge(
    State(mut launches): State<Launches>,
    Reporter(caller): Reporter,
    Extension(limits): Extension<RequestLimits>,
    Path(project): Path<String>,
    request: Request,
) -> Result<Json<Value>, Problem> {
    limits.charge_launch(caller.customer).await?;
    let request = MergeLaunchesRequest { project, body: body_of(request).await? };
    let request = caller.call_within(UPLOAD_TIMEOUT, request);
    let launch = launches.merge_launches(request).await?.into_inner();
    Ok(Json(listed(&launch)))
}

/// Finds a launch by its number or id.
async fn one(launches: &mut Launches, caller: &Caller, launch: String) -> Result<Launch, Problem> {
    let request = match launch.parse() {
        Ok(number) => FindLaunchesRequest { ids: Vec::new(), numbers: vec![number] },
        Err(_) => FindLaunchesRequest { ids: vec![launch], numbers: Vec::new() },
    };
    let found = launches.find_launches(caller.call(request)).await?.into_inner().launches;
    found.into_iter().next().ok_or_else(Problem::not_found)
}

/// Returns a launch as the requests that report it do: with its id.
fn rendered(launch: &Launch) -> Value {
    json!({ "id": launch.id, "number": launch.number, "link": launch.link })
}

/// Returns a launch as lists do: with its number as the id.
fn listed(launch: &Launch) -> Value {
    json!({
        "id": launch.number, "uuid": launch.id, "number": launch.number, "link": launch.link,
    })
}
