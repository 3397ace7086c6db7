//! `…/pools`.

use assay_auth::Caller;
use assay_proto::execution::{
    CreatePoolRequest, DeletePoolRequest, GetPoolRequest, ListPoolsRequest, Pool, PoolInput,
    UpdatePoolRequest,
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
    services::{Pools, Services},
    update::{Updatable, Update},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(get, update, delete))
}

impl Resource for Pool {
    fn data_version(&self) -> Option<&str> {
        Some(&self.data_version)
    }
}

impl Updatable for PoolInput {}

/// Lists the pools of a project, newest first.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/pools", operation_id = "list_pools", tag = "Pools",
    params(Listing),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.PoolService/ListPools"))),
    responses((status = OK, description = "The pools", body = [Pool])),
)]
async fn list(
    State(mut pools): State<Pools>,
    caller: Caller,
    Path(project_id): Path<String>,
    listing: Listing,
) -> Result<List, Problem> {
    let request = ListPoolsRequest { project_id, page: Some(listing.page()) };
    listing.respond(pools.list_pools(caller.call(request)).await?).await
}

/// Creates a pool: values, such as test accounts, each of which one test at a time may use.
///
/// A variable of a subject or of a test plan with the name of the pool as its `PoolName` takes its content from it.
/// When an engine leases a test, the lease takes a value that no other lease has, and the variables in the lease
/// have its contents. The value is free again when the lease ends or is lost. While all values are in use, tests
/// wait in the queue.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/pools", operation_id = "create_pool", tag = "Pools",
    request_body = PoolInput,
    extensions(("x-grpc-method" = json!("/assay.execution.v1.PoolService/CreatePool"))),
    responses((status = CREATED, description = "The pool", body = Pool)),
)]
async fn create(
    State(mut pools): State<Pools>,
    caller: Caller,
    Path(project_id): Path<String>,
    Body(input): Body<PoolInput>,
) -> Result<Created<Json<Pool>>, Problem> {
    let request = CreatePoolRequest { project_id, pool: Some(input) };
    let created = pools.create_pool(caller.call(request)).await?.into_inner();
    let path = format!("/api/projects/{}/pools/{}", created.project_id, created.id);
    Ok(Created(path, Json(created)))
}

/// Returns a pool.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/pools/{poolId}", operation_id = "get_pool",
    tag = "Pools",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.PoolService/GetPool"))),
    responses((status = OK, description = "The pool", body = Pool)),
)]
async fn get(
    State(mut pools): State<Pools>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<Json<Pool>, Problem> {
    let request = GetPoolRequest { project_id, id };
    Ok(Json(pools.get_pool(caller.call(request)).await?.into_inner()))
}

/// Changes a pool.
///
/// `Values` replaces all values. Those that are sent with their `Id` remain the same ones. Tests that use a value
/// keep it until their end, also if it is left out.
#[utoipa::path(
    put, path = "/api/projects/{projectId}/pools/{poolId}", operation_id = "update_pool",
    tag = "Pools", request_body = PoolInput,
    extensions(("x-grpc-method" = json!("/assay.execution.v1.PoolService/UpdatePool"))),
    responses((status = OK, description = "The changed pool", body = Pool)),
)]
async fn update(
    State(mut pools): State<Pools>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
    Update { changes, fields, data_version, .. }: Update<PoolInput>,
) -> Result<Json<Pool>, Problem> {
    let changes = Some(changes);
    let request = UpdatePoolRequest { project_id, id, data_version, changes, fields };
    Ok(Json(pools.update_pool(caller.call(request)).await?.into_inner()))
}

/// Deletes a pool, unless tests that are queued or running need it.
#[utoipa::path(
    delete, path = "/api/projects/{projectId}/pools/{poolId}", operation_id = "delete_pool",
    tag = "Pools",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.PoolService/DeletePool"))),
    responses((status = NO_CONTENT, description = "The pool has been deleted")),
)]
async fn delete(
    State(mut pools): State<Pools>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let request = DeletePoolRequest { project_id, id };
    pools.delete_pool(caller.call(request)).await?;
    Ok(StatusCode::NO_CONTENT)
}
