//! `…/results`: what test tools report, passed on while it comes in.

pub(super) mod media;

use assay_auth::Caller;
use assay_proto::execution::{
    Execution, InstanceResultInput, ReportResultsRequest, ReportResultsTarget, ReportedResults,
    UploadResultsRequest, UploadResultsTarget,
};
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use self::media::{EXAMPLE, Reported, TestRun};
use super::execution::location;
use crate::{
    answer::{Answer, Created, Parts, Record},
    idempotency::IdempotencyKey,
    path::Path,
    problem::Problem,
    query::Query,
    services::{Results, Services},
    upload::{PATIENCE, Piece},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(report)).routes(routes!(upload))
}

impl Answer for ReportedResults {}

/// Adds results to an execution in mode `External`, all or none.
///
/// At most 10,000 at a time, as a JSON array or with one result a line. Sending a result again
/// changes nothing. What is answered was stored.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/executions/{executionId}/results",
    operation_id = "report_results", tag = "Results",
    request_body(description = "What came of the instances", content(
        (Vec<InstanceResultInput> = "application/json"),
        (InstanceResultInput = "application/x-ndjson"),
    )),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ResultService/ReportResults"))),
    responses((status = OK, description = "What became of them", body = ReportedResults)),
)]
async fn report(
    State(mut results): State<Results>,
    caller: Caller,
    Path((project_id, execution_id)): Path<(String, String)>,
    Reported { lines, upload }: Reported,
) -> Result<Record<ReportedResults>, Problem> {
    let target = Some(ReportResultsTarget { project_id, execution_id, lines });
    let first = ReportResultsRequest { target, ..Default::default() };
    let next = |Piece { chunk, last, .. }| ReportResultsRequest { target: None, chunk, last };
    let reported = upload.send(first, next, async |messages| {
        results.report_results(caller.call_within(PATIENCE, messages)).await
    });
    Ok(Record(reported.await?.into_inner()))
}

/// What a test run is filed under, besides its set.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct RanOn {
    /// The subject that was tested; absent: the one selected in the set.
    #[param(format = Uuid)]
    subject_id: Option<String>,
    /// The environment it was tested in; absent: the one selected in the set.
    #[param(format = Uuid)]
    environment_id: Option<String>,
    /// Separated by commas; absent: those of the set.
    #[param(example = "nightly, release")]
    tags: Option<String>,
}

/// Turns the JUnit report of a test run into a completed execution.
///
/// Test cases are matched by their identifier, `classname.name`, or `name` where there is no class;
/// those that are new are added to the project and to the set. A client that got no answer sends the
/// same files again with the same `Idempotency-Key`, so that there is one execution.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/testsets/{testSetId}/results",
    operation_id = "upload_results", tag = "Results", params(RanOn, IdempotencyKey),
    request_body(description = "The report, in one file or several", content(
        (String = "application/xml", example = json!(EXAMPLE)),
        (String = "text/xml", example = json!(EXAMPLE)),
        (media::Files = "multipart/form-data", example = json!({"file": [EXAMPLE]})),
    )),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ResultService/UploadResults"))),
    responses((status = CREATED, description = "The execution", body = Execution)),
)]
async fn upload(
    State(mut results): State<Results>,
    caller: Caller,
    Path((project_id, test_set_id)): Path<(String, String)>,
    Query(RanOn { subject_id, environment_id, tags }): Query<RanOn>,
    IdempotencyKey(idempotency_key): IdempotencyKey,
    TestRun(upload): TestRun,
) -> Result<Created<Parts<Execution>>, Problem> {
    let target = UploadResultsTarget {
        project_id,
        test_set_id,
        subject_id,
        environment_id,
        tags,
        idempotency_key,
    };
    let first = UploadResultsRequest { target: Some(target), ..Default::default() };
    let next = |Piece { chunk, next_file, last }| UploadResultsRequest {
        target: None,
        chunk,
        next_file,
        last,
    };
    let execution = upload.send(first, next, async |messages| {
        results.upload_results(caller.call_within(PATIENCE, messages)).await
    });
    let execution = Parts::of(execution.await?).await?;
    Ok(Created(location(&execution.first), execution))
}
