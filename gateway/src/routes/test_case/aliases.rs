//! `…/testcases/{testCaseId}/aliases`.

use assay_auth::Caller;
use assay_proto::catalog::{
    GetAliasesRequest, ReplaceAliasesRequest, TestCaseAliases, TestCaseAliasesInput,
};
use axum::extract::State;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    body::Body,
    path::Path,
    problem::Problem,
    response::{Json, Resource},
    services::{Services, TestCases},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(get, replace))
}

impl Resource for TestCaseAliases {}

/// Returns the other identifiers of a test case.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testcases/{testCaseId}/aliases",
    operation_id = "get_aliases", tag = "Test cases",
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestCaseService/GetAliases"))),
    responses((status = OK, description = "The other identifiers", body = TestCaseAliases)),
)]
async fn get(
    State(mut cases): State<TestCases>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<Json<TestCaseAliases>, Problem> {
    let request = GetAliasesRequest { project_id, id };
    Ok(Json(cases.get_aliases(caller.call(request)).await?.into_inner()))
}

/// Replaces the other identifiers of a test case.
///
/// Results that test tools report under them belong to the test case. So a test that was renamed keeps
/// its history.
#[utoipa::path(
    put, path = "/api/projects/{projectId}/testcases/{testCaseId}/aliases",
    operation_id = "replace_aliases", tag = "Test cases", request_body = TestCaseAliasesInput,
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestCaseService/ReplaceAliases"))),
    responses((status = OK, description = "The other identifiers", body = TestCaseAliases)),
)]
async fn replace(
    State(mut cases): State<TestCases>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
    Body(aliases): Body<TestCaseAliasesInput>,
) -> Result<Json<TestCaseAliases>, Problem> {
    let request = ReplaceAliasesRequest { project_id, id, aliases: Some(aliases) };
    Ok(Json(cases.replace_aliases(caller.call(request)).await?.into_inner()))
}
