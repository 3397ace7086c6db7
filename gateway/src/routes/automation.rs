//! `/api/automation`: how engines fetch work and report what came of it.

use assay_auth::Caller;
use assay_proto::execution::{
    CompleteLeaseInput, CompleteLeaseRequest, InstanceEntry, InstanceResultInput, Lease,
    LeaseInput, LeaseSchedulesRequest, LeaseState, ReleaseLeaseRequest, RenewLeaseRequest,
    ReportInstancesRequest,
};
use axum::extract::State;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    answer::{Answer, Record},
    body::Body,
    list::{List, Listing},
    path::Path,
    problem::Problem,
    services::{Automation, Services},
    upload::{PATIENCE, Piece, Upload},
};

/// How long an engine may wait for work, and a bit more.
const LONG_POLL: std::time::Duration = std::time::Duration::from_secs(45);

/// What answers at once.
pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(renew)).routes(routes!(complete)).routes(routes!(release))
}

/// What may take its time: engines wait for work, and results take as long as the line.
pub(super) fn slow_routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(lease)).routes(routes!(report))
}

impl Answer for LeaseState {}

/// Leases work to an engine.
///
/// Of the schedules that wait for engines of the target group, the first ones; without any it waits,
/// as long as it was told, and then answers an empty array. Nobody else gets these schedules. A
/// lease that is not renewed for 60 seconds is lost: its work goes to another engine, and everything
/// that is sent for it fails with 409 `lease_lost`. Work with which three engines fell silent is
/// given up: its report ends as `EngineExecutionFailure`.
#[utoipa::path(
    post, path = "/api/automation/leases", operation_id = "lease_schedules", tag = "Automation",
    request_body = Option<LeaseInput>,
    extensions(("x-grpc-method" = json!("/assay.execution.v1.AutomationService/LeaseSchedules"))),
    responses((status = OK, description = "The leases", body = [Lease])),
)]
async fn lease(
    State(mut automation): State<Automation>,
    caller: Caller,
    listing: Listing,
    input: Option<Body<LeaseInput>>,
) -> Result<List, Problem> {
    let Body(input) = input.unwrap_or_default();
    let request = LeaseSchedulesRequest { lease: Some(input) };
    let leases = automation.lease_schedules(caller.call_within(LONG_POLL, request)).await?;
    listing.answer(leases).await
}

/// Renews a lease: a heartbeat of its engine.
///
/// `Continue` is false when the rest of the work is not wanted any more: the execution was canceled
/// or has run out of time, or stops because another test has failed.
#[utoipa::path(
    post, path = "/api/automation/leases/{leaseId}/heartbeat", operation_id = "renew_lease",
    tag = "Automation",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.AutomationService/RenewLease"))),
    responses((status = OK, description = "Whether to go on, and until when", body = LeaseState)),
)]
async fn renew(
    State(mut automation): State<Automation>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Record<LeaseState>, Problem> {
    let state = automation.renew_lease(caller.call(RenewLeaseRequest { id })).await?;
    Ok(Record(state.into_inner()))
}

/// Reports instances of a lease, all or none.
///
/// Sending an instance again changes nothing. With its last instance the report ends. What is
/// answered was stored. `TestCaseId` and `Identifier` are not needed here.
#[utoipa::path(
    post, path = "/api/automation/leases/{leaseId}/instances", operation_id = "report_instances",
    tag = "Automation",
    request_body(content = Vec<InstanceResultInput>, description = "What came of the instances"),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.AutomationService/ReportInstances"))),
    responses((status = OK, description = "The instances of these numbers", body = [InstanceEntry])),
)]
async fn report(
    State(mut automation): State<Automation>,
    caller: Caller,
    Path(id): Path<String>,
    listing: Listing,
    upload: Upload,
) -> Result<List, Problem> {
    let first = ReportInstancesRequest { id: Some(id), ..Default::default() };
    let next = |Piece { chunk, last, .. }| ReportInstancesRequest { id: None, chunk, last };
    let instances = upload.send(first, next, async |messages| {
        automation.report_instances(caller.call_within(PATIENCE, messages)).await
    });
    listing.answer(instances.await?).await
}

/// Ends a lease, and its report with it.
///
/// Instances that were not reported are `Aborted`; `Error` if the engine has failed; `Canceled` if
/// it was told not to go on. A report all of whose instances were reported has ended already and
/// stays as it is. Completing again changes nothing.
#[utoipa::path(
    post, path = "/api/automation/leases/{leaseId}/complete", operation_id = "complete_lease",
    tag = "Automation", request_body = Option<CompleteLeaseInput>,
    extensions(("x-grpc-method" = json!("/assay.execution.v1.AutomationService/CompleteLease"))),
    responses((status = NO_CONTENT, description = "The lease has ended")),
)]
async fn complete(
    State(mut automation): State<Automation>,
    caller: Caller,
    Path(id): Path<String>,
    input: Option<Body<CompleteLeaseInput>>,
) -> Result<StatusCode, Problem> {
    let Body(input) = input.unwrap_or_default();
    let request = CompleteLeaseRequest { id, completion: Some(input) };
    automation.complete_lease(caller.call(request)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Gives a lease back: what was not reported goes to another engine, at once.
#[utoipa::path(
    delete, path = "/api/automation/leases/{leaseId}", operation_id = "release_lease",
    tag = "Automation",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.AutomationService/ReleaseLease"))),
    responses((status = NO_CONTENT, description = "The work is in the queue again")),
)]
async fn release(
    State(mut automation): State<Automation>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    automation.release_lease(caller.call(ReleaseLeaseRequest { id })).await?;
    Ok(StatusCode::NO_CONTENT)
}
