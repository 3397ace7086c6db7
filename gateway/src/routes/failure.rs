//! `…/executions/{executionId}/failures`.

use assay_auth::Caller;
use assay_proto::{
    ResultChange,
    execution::{Failure, ListFailuresRequest},
};
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    list::{List, Listing},
    path::{Path, ShortRoutes, unless_zero},
    problem::Problem,
    query::{Query, unless_empty},
    services::{Failures, Services},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes_also_short(routes!(list))
}

/// The failures to return.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Filter {
    /// Count only test cases with this change, such as those that are `New`.
    #[param(inline, example = "New")]
    #[serde(default, deserialize_with = "unless_empty")]
    change: Option<ResultChange>,
    /// Count only test cases that are muted, or only those that are not.
    #[param(example = false)]
    muted: Option<bool>,
    /// Return only causes with test cases that need a review: those that fail, are not muted and have not been
    /// reviewed.
    #[param(example = false)]
    unreviewed: Option<bool>,
}

/// Lists the causes of the failures of an execution, those with the most test cases first.
///
/// Failures have the same cause if their messages are the same apart from values that differ between
/// runs, such as ports, ids and durations. `q` searches in the messages.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/executions/{executionId}/failures",
    operation_id = "list_failures", tag = "Executions", params(Filter, Listing),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.FailureService/ListFailures"))),
    responses((status = OK, description = "The causes", body = [Failure])),
)]
async fn list(
    State(mut failures): State<Failures>,
    caller: Caller,
    Path((project_id, execution_id)): Path<(String, String)>,
    Query(filter): Query<Filter>,
    listing: Listing,
) -> Result<List, Problem> {
    let request = ListFailuresRequest {
        project_id: unless_zero(project_id),
        execution_id,
        change: filter.change.unwrap_or_default().into(),
        page: Some(listing.page()),
        muted: filter.muted,
        unreviewed: filter.unreviewed.unwrap_or_default(),
    };
    let batches = failures.list_failures(caller.call(request)).await?;
    listing.respond(batches).await
}
