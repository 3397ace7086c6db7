//! `…/knownfailures`, and the test cases that a cause has made fail.

use assay_auth::Caller;
use assay_proto::execution::{
    CreateKnownFailureInput, CreateKnownFailureRequest, DeleteKnownFailureRequest, FailureMatch,
    GetKnownFailureRequest, KnownFailure, KnownFailureInput, ListKnownFailuresRequest,
    ListMatchesRequest, UpdateKnownFailureRequest,
};
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    body::Body,
    list::{List, Listing, WithoutSearch},
    path::Path,
    problem::Problem,
    query::Query,
    response::{Created, Json, Resource},
    services::{KnownFailures, Services},
    update::{Updatable, Update},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(list_matches))
        .routes(routes!(get, update, delete))
}

impl Resource for KnownFailure {
    fn data_version(&self) -> Option<&str> {
        Some(&self.data_version)
    }
}

impl Updatable for KnownFailureInput {}

/// Lists the known failures of a project, newest first.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/knownfailures", operation_id = "list_known_failures",
    tag = "Known failures", params(Listing),
    extensions(("x-grpc-method" =
        json!("/assay.execution.v1.KnownFailureService/ListKnownFailures"))),
    responses((status = OK, description = "The known failures", body = [KnownFailure])),
)]
async fn list(
    State(mut known): State<KnownFailures>,
    caller: Caller,
    Path(project_id): Path<String>,
    listing: Listing,
) -> Result<List, Problem> {
    let request = ListKnownFailuresRequest { project_id, page: Some(listing.page()) };
    listing.respond(known.list_known_failures(caller.call(request)).await?).await
}

/// Makes a cause known: its failures are muted in executions that are reported until a date.
///
/// They still count as failures, but not against the verdict of an execution. After that date they
/// count again.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/knownfailures", operation_id = "create_known_failure",
    tag = "Known failures", request_body = CreateKnownFailureInput,
    extensions(("x-grpc-method" =
        json!("/assay.execution.v1.KnownFailureService/CreateKnownFailure"))),
    responses((status = CREATED, description = "The known failure", body = KnownFailure)),
)]
async fn create(
    State(mut known): State<KnownFailures>,
    caller: Caller,
    Path(project_id): Path<String>,
    Body(input): Body<CreateKnownFailureInput>,
) -> Result<Created<Json<KnownFailure>>, Problem> {
    let request = CreateKnownFailureRequest { project_id, known_failure: Some(input) };
    let created = known.create_known_failure(caller.call(request)).await?.into_inner();
    let path = format!("/api/projects/{}/knownfailures/{}", created.project_id, created.id);
    Ok(Created(path, Json(created)))
}

/// The time in which a cause is sought.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Days {
    /// The number of days before now; 1 to 90, by default 30.
    #[param(example = 30)]
    days: Option<i32>,
}

/// Lists the test cases that a cause has made fail: those that a known failure with `EveryCase` would
/// have muted.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/failures/{fingerprint}/testcases",
    operation_id = "list_matches", tag = "Known failures",
    params(
        ("fingerprint" = String, Path, description = "The fingerprint of the cause",
            example = "5f0c1a52b7d94e3b8f26d1c07a9e4b63"),
        Days, WithoutSearch,
    ),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.KnownFailureService/ListMatches"))),
    responses((status = OK, description = "The test cases", body = [FailureMatch])),
)]
async fn list_matches(
    State(mut known): State<KnownFailures>,
    caller: Caller,
    Path((project_id, fingerprint)): Path<(String, String)>,
    Query(Days { days }): Query<Days>,
    WithoutSearch(listing): WithoutSearch,
) -> Result<List, Problem> {
    let request = ListMatchesRequest { project_id, fingerprint, days, page: Some(listing.page()) };
    listing.respond(known.list_matches(caller.call(request)).await?).await
}

/// Returns a known failure.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/knownfailures/{knownFailureId}",
    operation_id = "get_known_failure", tag = "Known failures",
    extensions(("x-grpc-method" =
        json!("/assay.execution.v1.KnownFailureService/GetKnownFailure"))),
    responses((status = OK, description = "The known failure", body = KnownFailure)),
)]
async fn get(
    State(mut known): State<KnownFailures>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<Json<KnownFailure>, Problem> {
    let request = GetKnownFailureRequest { project_id, id };
    Ok(Json(known.get_known_failure(caller.call(request)).await?.into_inner()))
}

/// Changes the ticket, the comment or the end of a known failure.
#[utoipa::path(
    put, path = "/api/projects/{projectId}/knownfailures/{knownFailureId}",
    operation_id = "update_known_failure", tag = "Known failures",
    request_body = KnownFailureInput,
    extensions(("x-grpc-method" =
        json!("/assay.execution.v1.KnownFailureService/UpdateKnownFailure"))),
    responses((status = OK, description = "The changed known failure", body = KnownFailure)),
)]
async fn update(
    State(mut known): State<KnownFailures>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
    Update { changes, fields, data_version, .. }: Update<KnownFailureInput>,
) -> Result<Json<KnownFailure>, Problem> {
    let changes = Some(changes);
    let request = UpdateKnownFailureRequest { project_id, id, data_version, changes, fields };
    Ok(Json(known.update_known_failure(caller.call(request)).await?.into_inner()))
}

/// Deletes a known failure. Results that it has muted stay muted.
#[utoipa::path(
    delete, path = "/api/projects/{projectId}/knownfailures/{knownFailureId}",
    operation_id = "delete_known_failure", tag = "Known failures",
    extensions(("x-grpc-method" =
        json!("/assay.execution.v1.KnownFailureService/DeleteKnownFailure"))),
    responses((status = NO_CONTENT, description = "The known failure has been deleted")),
)]
async fn delete(
    State(mut known): State<KnownFailures>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let request = DeleteKnownFailureRequest { project_id, id };
    known.delete_known_failure(caller.call(request)).await?;
    Ok(StatusCode::NO_CONTENT)
}
