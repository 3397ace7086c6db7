//! `/api/executions`: executions that are opened by names.

use assay_auth::Caller;
use assay_proto::execution::{Execution, OpenExecutionInput, OpenExecutionRequest};
use axum::extract::State;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    body::Body,
    idempotency::IdempotencyKey,
    problem::Problem,
    response::{Created, Streamed},
    services::{Executions, Services},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(open))
}

/// Opens an execution by the names of its project and test set, or joins the one with the same key.
///
/// An open execution adopts test cases as their results arrive, from several reporters at once:
/// shards, processes or jobs of the same test run. It ends when it is completed, when all its
/// reporters have completed, or the grace period after the last result. Tests that were announced
/// and never reported end as `Aborted`.
#[utoipa::path(
    post, path = "/api/executions", operation_id = "open_execution", tag = "Executions",
    params(IdempotencyKey), request_body = OpenExecutionInput,
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ExecutionService/OpenExecution"))),
    responses((status = CREATED, description = "The open execution", body = Execution)),
)]
async fn open(
    State(mut executions): State<Executions>,
    caller: Caller,
    IdempotencyKey(idempotency_key): IdempotencyKey,
    Body(input): Body<OpenExecutionInput>,
) -> Result<Created<Streamed<Execution>>, Problem> {
    let request = OpenExecutionRequest {
        execution: Some(input),
        idempotency_key,
        ..OpenExecutionRequest::default()
    };
    let opened = Streamed::of(executions.open_execution(caller.call(request)).await?).await?;
    Ok(Created(format!("/api/executions/{}", opened.first.id), opened))
}
