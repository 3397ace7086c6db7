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
    /// Return only the cause with this fingerprint.
    #[param(example = "5f0c1a52b7d94e3b8f26d1c07a9e4b63")]
    #[serde(default, deserialize_with = "unless_empty")]
    fingerprint: Option<String>,
}

/// Lists the causes of the failures of an execution, those with the most test cases first.
///
/// Failures have the same cause if their messages are the same apart from values that differ between
/// runs, such as ports, ids and durations. `q` selects the causes with a message that has the text.
///
/// The 50 causes with the most test cases lead the list, the others follow in the order of their
/// fingerprints. So no cause is left out, and none is listed twice, if their numbers change between two
/// pages.
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
        fingerprint: filter.fingerprint,
    };
    let batches = failures.list_failures(caller.call(request)).await?;
    listing.respond(batches).await
}
