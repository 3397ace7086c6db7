//! `/api/projects/{projectId}/insights`.

use assay_auth::Caller;
use assay_proto::execution::{Insight, InsightKind, ListInsightsRequest};
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    list::{List, Listing},
    path::Path,
    problem::Problem,
    query::{Query, unless_empty},
    services::{Insights, Services},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(list))
}

/// The test cases and executions to consider.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Filter {
    /// The reason why test cases need attention; by default they are `Flaky`.
    #[param(inline, example = "Flaky")]
    #[serde(default, deserialize_with = "unless_empty")]
    kind: Option<InsightKind>,
    /// The number of days, today (UTC) included; 1 to 90, by default 14.
    #[param(minimum = 1, maximum = 90, example = 14)]
    days: Option<i32>,
    /// Consider only executions of this branch.
    #[param(example = "main")]
    branch: Option<String>,
}

/// Lists the test cases of a project that need attention most, by their results of the last days.
///
/// Only ended executions count, about a second after they ended. `Flaky` are test cases that passed
/// after a failed attempt, or at least twice after a failed execution. `NewlyFailing` ones began to
/// fail within these days, other than in an outage, and failed last. `Slowest` considers the 200
/// slowest test cases of each execution. `Slower` are test cases that take longer since a run within
/// these days, in the median of the runs that passed in a test set, an environment and a branch: by a
/// quarter and 50 ms at least. It considers 100 runs of the 50 test cases whose average has grown most from day to day,
/// among those that `Slowest` considers. The fields from `SinceExecutionId` on say when test cases of
/// `NewlyFailing` and `Slower` began to fail or to take longer.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/insights", operation_id = "list_insights",
    tag = "Projects", params(Filter, Listing),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.InsightService/ListInsights"))),
    responses((status = OK, description = "The test cases", body = [Insight])),
)]
async fn list(
    State(mut insights): State<Insights>,
    caller: Caller,
    Path(project_id): Path<String>,
    Query(Filter { kind, days, branch }): Query<Filter>,
    listing: Listing,
) -> Result<List, Problem> {
    let request = ListInsightsRequest {
        project_id,
        kind: kind.unwrap_or_default().into(),
        days,
        branch,
        page: Some(listing.page()),
    };
    listing.respond(insights.list_insights(caller.call(request)).await?).await
}
