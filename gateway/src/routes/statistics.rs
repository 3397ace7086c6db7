//! `…/testsets/{testSetId}/stats`, `…/testcases/{testCaseId}/history`, and the results of several
//! executions beside each other.

mod grid;

use assay_auth::Caller;
use assay_proto::{
    ExecutionStatistic,
    execution::{ListExecutionStatisticsRequest, ListTestCaseRunsRequest, TestCaseRun},
};
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    list::{List, Listing},
    path::Path,
    problem::Problem,
    query::{Query, unless_empty},
    services::{Services, Statistics},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(list_executions))
        .routes(routes!(list_runs))
        .merge(grid::routes())
}

/// The executions to return; all by default. Empty parameters count as absent.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct Filter {
    /// Return only executions requested on this day or later, as yyyy-MM-dd in UTC, or with the difference of
    /// a time zone, as `2026-03-01+02:00`.
    #[param(example = "2026-03-01")]
    #[serde(default, deserialize_with = "unless_empty")]
    from_date: Option<String>,
    /// Return only executions requested on this day or earlier, as yyyy-MM-dd in UTC, or with the difference of
    /// a time zone, as `2026-03-01+02:00`.
    #[param(example = "2026-03-31")]
    #[serde(default, deserialize_with = "unless_empty")]
    to_date: Option<String>,
    /// Return only executions with this tag.
    #[param(example = "nightly")]
    tag: Option<String>,
    /// Return only executions in this environment.
    #[param(format = Uuid)]
    #[serde(default, deserialize_with = "unless_empty")]
    environment_id: Option<String>,
}

/// Lists statistics of the executions of a test set, archived or not, newest first.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testsets/{testSetId}/stats",
    operation_id = "list_execution_statistics", tag = "Executions", params(Filter, Listing),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.StatisticsService/ListExecutionStatistics"))),
    responses((status = OK, description = "The statistics", body = [ExecutionStatistic])),
)]
async fn list_executions(
    State(mut statistics): State<Statistics>,
    caller: Caller,
    Path((project_id, test_set_id)): Path<(String, String)>,
    Query(Filter { from_date, to_date, tag, environment_id }): Query<Filter>,
    listing: Listing,
) -> Result<List, Problem> {
    let request = ListExecutionStatisticsRequest {
        project_id,
        test_set_id,
        from_date,
        to_date,
        tag,
        environment_id,
        page: Some(listing.page()),
    };
    let batches = statistics.list_execution_statistics(caller.call(request)).await?;
    listing.respond(batches).await
}

/// The runs to return; all by default. Empty parameters count as absent.
#[derive(Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", default)]
#[into_params(parameter_in = Query)]
struct Series {
    /// Return only runs of this branch.
    #[param(example = "main")]
    branch: Option<String>,
    /// Return only runs of this test set.
    #[param(format = Uuid)]
    #[serde(deserialize_with = "unless_empty")]
    test_set_id: Option<String>,
    /// Return only runs in this environment.
    #[param(format = Uuid)]
    #[serde(deserialize_with = "unless_empty")]
    environment_id: Option<String>,
}

/// Lists the results of a test case in its executions, and how flaky they are: those that were requested
/// last first.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testcases/{testCaseId}/history",
    operation_id = "list_test_case_runs", tag = "Test cases", params(Series, Listing),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.StatisticsService/ListTestCaseRuns"))),
    responses((status = OK, description = "The runs", body = [TestCaseRun])),
)]
async fn list_runs(
    State(mut statistics): State<Statistics>,
    caller: Caller,
    Path((project_id, test_case_id)): Path<(String, String)>,
    Query(Series { branch, test_set_id, environment_id }): Query<Series>,
    listing: Listing,
) -> Result<List, Problem> {
    let request = ListTestCaseRunsRequest {
        project_id,
        test_case_id,
        page: Some(listing.page()),
        branch,
        test_set_id,
        environment_id,
    };
    let batches = statistics.list_test_case_runs(caller.call(request)).await?;
    listing.respond(batches).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_parameter_is_absent() {
        let read = |query: &str| {
            let uri = format!("/?{query}").parse().unwrap();
            axum::extract::Query::<Filter>::try_from_uri(&uri).unwrap().0
        };
        let empty = read("fromDate=&toDate=&environmentId=");
        assert_eq!((empty.from_date, empty.to_date, empty.environment_id), (None, None, None));
        let given = read("fromDate=2026-03-01&tag=nightly");
        assert_eq!(given.from_date.as_deref(), Some("2026-03-01"));
        assert_eq!((given.to_date, given.tag.as_deref()), (None, Some("nightly")));
    }
}
