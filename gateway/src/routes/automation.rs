//! `/api/automation`: leases of work for engines, and their results.

use assay_auth::Caller;
use assay_proto::{
    catalog::DownloadAutomationFileRequest,
    execution::{
        CompleteLeaseInput, CompleteLeaseRequest, GetLeasedRecordsRequest, InstanceEntry,
        InstanceResultInput, Lease, LeaseInput, LeaseSchedulesRequest, LeaseState,
        ReleaseLeaseRequest, RenewLeaseInput, RenewLeaseRequest, ReportInstancesRequest,
    },
};
use axum::{extract::State, response::Response};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    body::Body,
    contents,
    list::{List, Listing},
    path::Path,
    problem::Problem,
    range::Wanted,
    response::{Json, Resource},
    services::{Automation, AutomationFiles, Services},
    upload::{Chunk, UPLOAD_TIMEOUT, Upload},
};

/// Timeout of a request that waits: longer than the longest time for which an engine may wait.
const LONG_POLL: std::time::Duration = std::time::Duration::from_secs(45);

/// Returns the routes that respond immediately.
pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(complete)).routes(routes!(release))
}

/// Returns the routes that may take long: engines wait for work and for its end, and uploads and downloads
/// depend on the connection.
pub(super) fn slow_routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(lease))
        .routes(routes!(renew))
        .routes(routes!(report))
        .routes(routes!(download))
}

impl Resource for LeaseState {}

/// Leases work to an engine.
///
/// Takes the first schedules from the queue of the target group. If there are none, the request
/// waits for as long as it states, and then returns an empty array. A schedule is leased to one
/// engine at a time. A lease that is not renewed for 60 seconds is lost: its work goes to another
/// engine, and requests for it fail with 409 `lease_lost`. After three lost leases of the same
/// work, its report ends as `EngineExecutionFailure`.
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
    listing.respond(leases).await
}

/// Renews a lease with a heartbeat of its engine.
///
/// `Continue` is false if the engine should stop: the execution was canceled, has timed out, or
/// stops because another test has failed, or the lease has timed out. With `WaitInSec`, the request
/// waits until then: an engine that always has such a request open knows within a second.
#[utoipa::path(
    post, path = "/api/automation/leases/{leaseId}/heartbeat", operation_id = "renew_lease",
    tag = "Automation", request_body = Option<RenewLeaseInput>,
    extensions(("x-grpc-method" = json!("/assay.execution.v1.AutomationService/RenewLease"))),
    responses((status = OK, description = "Whether to continue, and when the lease expires", body = LeaseState)),
)]
async fn renew(
    State(mut automation): State<Automation>,
    caller: Caller,
    Path(id): Path<String>,
    input: Option<Body<RenewLeaseInput>>,
) -> Result<Json<LeaseState>, Problem> {
    let Body(input) = input.unwrap_or_default();
    let request = RenewLeaseRequest { id, renewal: Some(input) };
    let state = automation.renew_lease(caller.call_within(LONG_POLL, request)).await?;
    Ok(Json(state.into_inner()))
}

/// Returns the contents of a file of a lease, or a range of them.
///
/// The engine of a held lease may download the files to which the test plan, the subject and the environment
/// refer: `Files` of the lease. `Range` may ask for one range. With `If-Range`, the whole file is returned if
/// it is not the one with this entity tag.
#[utoipa::path(
    get, path = "/api/automation/leases/{leaseId}/files/{fileId}",
    operation_id = "download_leased_file", tag = "Automation",
    params(
        ("Range" = Option<String>, Header, description = "The range to return",
            example = "bytes=0-1023"),
        ("If-Range" = Option<String>, Header, description = "The entity tag that the range is of",
            example = "\"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\""),
    ),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.AutomationService/DownloadAutomationFile"))),
    responses(
        (status = OK, description = "The contents", body = String,
            content_type = "application/octet-stream", example = json!("MSI")),
        (status = PARTIAL_CONTENT, description = "The range of the contents", body = String,
            content_type = "application/octet-stream", example = json!("M")),
    ),
)]
async fn download(
    State(mut automation): State<Automation>,
    State(mut files): State<AutomationFiles>,
    caller: Caller,
    Wanted { range, if_tag: if_sha256, head_only }: Wanted,
    Path((lease, id)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let records = GetLeasedRecordsRequest { id: lease };
    let records = automation.get_leased_records(caller.call(records)).await?.into_inner();
    let record_ids = records.record_ids;
    let request = DownloadAutomationFileRequest { record_ids, id, range, if_sha256, head_only };
    contents::respond(files.download_automation_file(caller.call(request)).await?.into_inner())
        .await
}

/// Reports instances of a lease, all or none.
///
/// Reporting an instance again has no effect. The last instance ends the test report. The response
/// shows the stored instances. `TestCaseId` and `Identifier` are not needed.
#[utoipa::path(
    post, path = "/api/automation/leases/{leaseId}/instances", operation_id = "report_instances",
    tag = "Automation",
    request_body(content = Vec<InstanceResultInput>, description = "The results of the instances"),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.AutomationService/ReportInstances"))),
    responses((status = OK, description = "The instances with these numbers", body = [InstanceEntry])),
)]
async fn report(
    State(mut automation): State<Automation>,
    caller: Caller,
    Path(id): Path<String>,
    listing: Listing,
    upload: Upload,
) -> Result<List, Problem> {
    let first = ReportInstancesRequest { id: Some(id), ..Default::default() };
    let next = |Chunk { bytes, last, .. }| ReportInstancesRequest { id: None, chunk: bytes, last };
    let instances = upload.send(first, next, async |messages| {
        automation.report_instances(caller.call_within(UPLOAD_TIMEOUT, messages)).await
    });
    listing.respond(instances.await?).await
}

/// Completes a lease and its test report.
///
/// Instances that were not reported become `Aborted`, `Error` if the engine has failed, or
/// `Canceled` if the engine had to stop. A test report with all instances has ended already and
/// does not change. Completing a lease again has no effect.
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

/// Releases a lease: instances that were not reported go to another engine immediately.
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
