//! `/api/projects/{projectId}/environments`.

use assay_auth::Caller;
use assay_proto::catalog::{
    CreateEnvironmentRequest, DeleteEnvironmentRequest, Environment, EnvironmentEntry,
    EnvironmentInput, GetEnvironmentRequest, ListEnvironmentsRequest, UpdateEnvironmentRequest,
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
    services::{Environments, Services},
    update::{Updatable, Update},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(list_archived))
        .routes(routes!(get, update, delete))
}

impl Resource for EnvironmentEntry {}

impl Resource for Environment {
    fn data_version(&self) -> Option<&str> {
        Some(&self.data_version)
    }
}

impl Updatable for EnvironmentInput {}

/// Lists the environments of a project that are not archived, newest first.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/environments", operation_id = "list_environments",
    tag = "Environments", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.EnvironmentService/ListEnvironments"))),
    responses((status = OK, description = "The environments", body = [EnvironmentEntry])),
)]
async fn list(
    State(environments): State<Environments>,
    caller: Caller,
    Path(project_id): Path<String>,
    listing: Listing,
) -> Result<List, Problem> {
    list_of(environments, &caller, project_id, listing, false).await
}

/// Lists the environments of a project that are in the archive, newest first.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/environments/archive",
    operation_id = "list_environments_in_archive", tag = "Environments", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.EnvironmentService/ListEnvironments"))),
    responses((status = OK, description = "The environments", body = [EnvironmentEntry])),
)]
async fn list_archived(
    State(environments): State<Environments>,
    caller: Caller,
    Path(project_id): Path<String>,
    listing: Listing,
) -> Result<List, Problem> {
    list_of(environments, &caller, project_id, listing, true).await
}

async fn list_of(
    mut environments: Environments,
    caller: &Caller,
    project_id: String,
    listing: Listing,
    archived: bool,
) -> Result<List, Problem> {
    let request = ListEnvironmentsRequest { project_id, page: Some(listing.page()), archived };
    listing.respond(environments.list_environments(caller.call(request)).await?).await
}

/// Returns an environment.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/environments/{environmentId}",
    operation_id = "get_environment", tag = "Environments",
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.EnvironmentService/GetEnvironment"))),
    responses((status = OK, description = "The environment", body = Environment)),
)]
async fn get(
    State(mut environments): State<Environments>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<Json<Environment>, Problem> {
    let request = GetEnvironmentRequest { project_id, id };
    let environment = environments.get_environment(caller.call(request)).await?;
    Ok(Json(environment.into_inner()))
}

/// Adds an environment to a project.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/environments", operation_id = "create_environment",
    tag = "Environments", request_body = EnvironmentInput,
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.EnvironmentService/CreateEnvironment"))),
    responses((status = CREATED, description = "The new environment", body = EnvironmentEntry)),
)]
async fn create(
    State(mut environments): State<Environments>,
    caller: Caller,
    Path(project_id): Path<String>,
    Body(input): Body<EnvironmentInput>,
) -> Result<Created<Json<EnvironmentEntry>>, Problem> {
    let environments_of_project = format!("/api/projects/{project_id}/environments");
    let request = CreateEnvironmentRequest { project_id, environment: Some(input) };
    let environment = environments.create_environment(caller.call(request)).await?.into_inner();
    Ok(Created(format!("{environments_of_project}/{}", environment.id), Json(environment)))
}

/// Changes an environment, or moves it into the archive or out of it.
#[utoipa::path(
    put, path = "/api/projects/{projectId}/environments/{environmentId}",
    operation_id = "update_environment", tag = "Environments", request_body = EnvironmentInput,
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.EnvironmentService/UpdateEnvironment"))),
    responses((status = OK, description = "The changed environment", body = Environment)),
)]
async fn update(
    State(mut environments): State<Environments>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
    Update { changes, fields, data_version, .. }: Update<EnvironmentInput>,
) -> Result<Json<Environment>, Problem> {
    let changes = Some(changes);
    let request = UpdateEnvironmentRequest { project_id, id, data_version, changes, fields };
    let environment = environments.update_environment(caller.call(request)).await?;
    Ok(Json(environment.into_inner()))
}

/// Deletes an environment.
///
/// Test sets in which it was selected have none selected afterwards. Its executions are kept.
#[utoipa::path(
    delete, path = "/api/projects/{projectId}/environments/{environmentId}",
    operation_id = "delete_environment", tag = "Environments",
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.EnvironmentService/DeleteEnvironment"))),
    responses((status = NO_CONTENT, description = "The environment has been deleted")),
)]
async fn delete(
    State(mut environments): State<Environments>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    environments
        .delete_environment(caller.call(DeleteEnvironmentRequest { project_id, id }))
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
