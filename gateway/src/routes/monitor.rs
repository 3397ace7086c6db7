//! `…/monitors`, and their actions.

use assay_auth::Caller;
use assay_proto::execution::{
    CreateMonitorRequest, DeleteMonitorRequest, GetMonitorRequest, ListMonitorActionsRequest,
    ListMonitorsRequest, Monitor, MonitorAction, MonitorInput, UpdateMonitorRequest,
};
use axum::extract::State;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    body::Body,
    list::{List, Listing},
    path::Path,
    problem::Problem,
    response::{Created, Json, Resource},
    services::{Monitors, Services},
    update::{Updatable, Update},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get, update, delete))
        .routes(routes!(list_actions))
}

impl Resource for Monitor {
    fn data_version(&self) -> Option<&str> {
        Some(&self.data_version)
    }
}

impl Updatable for MonitorInput {}

/// Lists the monitors of a project, newest first.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/monitors", operation_id = "list_monitors",
    tag = "Monitors", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.MonitorService/ListMonitors"))),
    responses((status = OK, description = "The monitors", body = [Monitor])),
)]
async fn list(
    State(mut monitors): State<Monitors>,
    caller: Caller,
    Path(project_id): Path<String>,
    listing: Listing,
) -> Result<List, Problem> {
    let request = ListMonitorsRequest { project_id, page: Some(listing.page()) };
    listing.respond(monitors.list_monitors(caller.call(request)).await?).await
}

/// Creates a monitor: it mutes or skips test cases while they are flaky or slow.
///
/// A monitor measures the last runs of each test case in the test set, environment and branch of an execution, a
/// few seconds after the execution has ended. It acts on test cases that reach its threshold and are flaky, never
/// on those that are broken, and not after an outage. It lifts only states that it has set.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/monitors", operation_id = "create_monitor",
    tag = "Monitors", request_body = MonitorInput,
    extensions(("x-grpc-method" = json!("/assay.execution.v1.MonitorService/CreateMonitor"))),
    responses((status = CREATED, description = "The monitor", body = Monitor)),
)]
async fn create(
    State(mut monitors): State<Monitors>,
    caller: Caller,
    Path(project_id): Path<String>,
    Body(input): Body<MonitorInput>,
) -> Result<Created<Json<Monitor>>, Problem> {
    let request = CreateMonitorRequest { project_id, monitor: Some(input) };
    let created = monitors.create_monitor(caller.call(request)).await?.into_inner();
    let path = format!("/api/projects/{}/monitors/{}", created.project_id, created.id);
    Ok(Created(path, Json(created)))
}

/// Returns a monitor.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/monitors/{monitorId}", operation_id = "get_monitor",
    tag = "Monitors",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.MonitorService/GetMonitor"))),
    responses((status = OK, description = "The monitor", body = Monitor)),
)]
async fn get(
    State(mut monitors): State<Monitors>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<Json<Monitor>, Problem> {
    let request = GetMonitorRequest { project_id, id };
    Ok(Json(monitors.get_monitor(caller.call(request)).await?.into_inner()))
}

/// Changes a monitor.
///
/// If its measure, action, branch or `DryRun` changes, it forgets which test cases have reached its threshold.
/// States that it has set stay until their end.
#[utoipa::path(
    put, path = "/api/projects/{projectId}/monitors/{monitorId}", operation_id = "update_monitor",
    tag = "Monitors", request_body = MonitorInput,
    extensions(("x-grpc-method" = json!("/assay.execution.v1.MonitorService/UpdateMonitor"))),
    responses((status = OK, description = "The changed monitor", body = Monitor)),
)]
async fn update(
    State(mut monitors): State<Monitors>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
    Update { changes, fields, data_version, .. }: Update<MonitorInput>,
) -> Result<Json<Monitor>, Problem> {
    let changes = Some(changes);
    let request = UpdateMonitorRequest { project_id, id, data_version, changes, fields };
    Ok(Json(monitors.update_monitor(caller.call(request)).await?.into_inner()))
}

/// Deletes a monitor. States of test cases that it has set stay until their end.
#[utoipa::path(
    delete, path = "/api/projects/{projectId}/monitors/{monitorId}",
    operation_id = "delete_monitor", tag = "Monitors",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.MonitorService/DeleteMonitor"))),
    responses((status = NO_CONTENT, description = "The monitor has been deleted")),
)]
async fn delete(
    State(mut monitors): State<Monitors>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let request = DeleteMonitorRequest { project_id, id };
    monitors.delete_monitor(caller.call(request)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists the actions of a monitor in the last 90 days, newest first, up to 10,000.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/monitors/{monitorId}/actions",
    operation_id = "list_monitor_actions", tag = "Monitors", params(Listing),
    extensions(("x-grpc-method" =
        json!("/assay.execution.v1.MonitorService/ListMonitorActions"))),
    responses((status = OK, description = "The actions", body = [MonitorAction])),
)]
async fn list_actions(
    State(mut monitors): State<Monitors>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
    listing: Listing,
) -> Result<List, Problem> {
    let request = ListMonitorActionsRequest { project_id, id, page: Some(listing.page()) };
    listing.respond(monitors.list_monitor_actions(caller.call(request)).await?).await
}
