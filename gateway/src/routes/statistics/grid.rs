//! `…/testsets/{testSetId}/grid` and `…/executions/{executionId}/comparison`.

use assay_auth::Caller;
use assay_proto::execution::{GetGridRequest, Grid, ListDifferencesRequest, ResultDifference};
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    list::{List, Listing},
    path::{Path, ShortRoutes, unless_zero},
    problem::Problem,
    query::{Query, unless_empty},
    response::{Json, Resource},
    services::{Services, Statistics},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(get)).routes_also_short(routes!(compare))
}

impl Resource for Grid {}

/// The executions and test cases of a grid.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct GridQuery {
    /// Return only executions of this branch.
    #[param(example = "main")]
    branch: Option<String>,
    /// Return only executions in this environment.
    #[param(format = Uuid)]
    #[serde(default, deserialize_with = "unless_empty")]
    environment_id: Option<String>,
    /// The number of executions; 1 to 50, by default 20.
    #[param(minimum = 1, maximum = 50, example = 20)]
    executions: Option<i32>,
    /// The number of test cases; 1 to 200, by default 50.
    #[param(minimum = 1, maximum = 200, example = 50)]
    limit: Option<i32>,
    /// The `NextCursor` of the test cases before.
    #[param(example = "!019cade2-11c0-7b21-8d4f-0a96c3e15f72")]
    cursor: Option<String>,
    /// Return only test cases that fail in at least one of the executions.
    #[param(example = true)]
    failing: Option<bool>,
}

/// Returns the results of the test cases of a test set in its latest executions.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testsets/{testSetId}/grid", operation_id = "get_grid",
    tag = "Test sets", params(GridQuery),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.StatisticsService/GetGrid"))),
    responses((status = OK, description = "The results", body = Grid)),
)]
async fn get(
    State(mut statistics): State<Statistics>,
    caller: Caller,
    Path((project_id, test_set_id)): Path<(String, String)>,
    Query(query): Query<GridQuery>,
) -> Result<Json<Grid>, Problem> {
    let GridQuery { branch, environment_id, executions, limit, cursor, failing } = query;
    let request = GetGridRequest {
        project_id,
        test_set_id,
        branch,
        environment_id,
        executions,
        limit,
        cursor,
        failing: failing.unwrap_or_default(),
    };
    Ok(Json(statistics.get_grid(caller.call(request)).await?.into_inner()))
}

/// The execution to compare with.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct Other {
    /// The id of an execution of the same project; by default the latest one that the results are
    /// compared with.
    #[param(format = Uuid)]
    #[serde(default, deserialize_with = "unless_empty")]
    other_execution_id: Option<String>,
}

/// Lists the test cases that have different results in two executions.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/executions/{executionId}/comparison",
    operation_id = "list_differences", tag = "Executions", params(Other, Listing),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.StatisticsService/ListDifferences"))),
    responses((status = OK, description = "The differences", body = [ResultDifference])),
)]
async fn compare(
    State(mut statistics): State<Statistics>,
    caller: Caller,
    Path((project_id, execution_id)): Path<(String, String)>,
    Query(Other { other_execution_id }): Query<Other>,
    listing: Listing,
) -> Result<List, Problem> {
    let request = ListDifferencesRequest {
        project_id: unless_zero(project_id),
        execution_id,
        other_execution_id,
        page: Some(listing.page()),
    };
    listing.respond(statistics.list_differences(caller.call(request)).await?).await
}
