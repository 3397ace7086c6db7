//! `…/results`: results of test tools, streamed to the execution service.

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

use self::media::{EXAMPLE, GO_EXAMPLE, ReportUpload, ResultsUpload, TAP_EXAMPLE, ctrf_example};
use super::execution::location;
use crate::{
    idempotency::IdempotencyKey,
    path::Path,
    problem::Problem,
    query::Query,
    response::{Created, Json, Resource, Streamed},
    services::{Results, Services},
    upload::{Chunk, UPLOAD_TIMEOUT},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(report)).routes(routes!(upload))
}

impl Resource for ReportedResults {}

/// Adds results to an execution in mode `External`, all or none.
///
/// A request has at most 10,000 results, in a JSON array or one per line. Reporting a result again
/// has no effect. The response shows the stored results.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/executions/{executionId}/results",
    operation_id = "report_results", tag = "Results",
    request_body(description = "The results of the instances", content(
        (Vec<InstanceResultInput> = "application/json"),
        (InstanceResultInput = "application/x-ndjson"),
    )),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ResultService/ReportResults"))),
    responses((status = OK, description = "The outcome for each result", body = ReportedResults)),
)]
async fn report(
    State(mut results): State<Results>,
    caller: Caller,
    Path((project_id, execution_id)): Path<(String, String)>,
    ResultsUpload { lines, upload }: ResultsUpload,
) -> Result<Json<ReportedResults>, Problem> {
    let target = Some(ReportResultsTarget { project_id, execution_id, lines });
    let first = ReportResultsRequest { target, ..Default::default() };
    let next =
        |Chunk { bytes, last, .. }| ReportResultsRequest { target: None, chunk: bytes, last };
    let reported = upload.send(first, next, async |messages| {
        results.report_results(caller.call_within(UPLOAD_TIMEOUT, messages)).await
    });
    Ok(Json(reported.await?.into_inner()))
}

/// The subject, environment and tags of a test run.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct TestRunQuery {
    /// The subject that was tested; by default the one selected in the test set.
    #[param(format = Uuid)]
    subject_id: Option<String>,
    /// The environment of the test run; by default the one selected in the test set.
    #[param(format = Uuid)]
    environment_id: Option<String>,
    /// Tags, separated by commas; by default those of the test set.
    #[param(example = "nightly, release")]
    tags: Option<String>,
}

/// Creates a completed execution from the report of a test run.
///
/// The format of a file is recognized by its contents: JUnit XML, CTRF, Playwright JSON, Cucumber
/// JSON and messages, `go test -json`, TAP, Robot Framework, NUnit 3, xUnit.net, TRX or TestNG. Test
/// cases are matched by their identifier: the class, file or feature, a dot and the name, or only
/// the name. New test cases are added to the project and to the test set. A client that has not received a
/// response can retry with the same files and the same `Idempotency-Key`, which returns the same
/// execution.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/testsets/{testSetId}/results",
    operation_id = "upload_results", tag = "Results", params(TestRunQuery, IdempotencyKey),
    request_body(description = "The report, in one or several files", content(
        (String = "application/xml", example = json!(EXAMPLE)),
        (String = "text/xml", example = json!(EXAMPLE)),
        (media::JsonReport = "application/json", example = json!(ctrf_example())),
        (String = "application/x-ndjson", example = json!(GO_EXAMPLE)),
        (String = "text/plain", example = json!(TAP_EXAMPLE)),
        (media::Files = "multipart/form-data", example = json!({"file": [EXAMPLE]})),
    )),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ResultService/UploadResults"))),
    responses((status = CREATED, description = "The execution", body = Execution)),
)]
async fn upload(
    State(mut results): State<Results>,
    caller: Caller,
    Path((project_id, test_set_id)): Path<(String, String)>,
    Query(TestRunQuery { subject_id, environment_id, tags }): Query<TestRunQuery>,
    IdempotencyKey(idempotency_key): IdempotencyKey,
    ReportUpload(upload): ReportUpload,
) -> Result<Created<Streamed<Execution>>, Problem> {
    let target = UploadResultsTarget {
        project_id,
        test_set_id,
        subject_id,
        environment_id,
        tags,
        idempotency_key,
    };
    let first = UploadResultsRequest { target: Some(target), ..Default::default() };
    let next = |Chunk { bytes, next_file, last }| UploadResultsRequest {
        target: None,
        chunk: bytes,
        next_file,
        last,
    };
    let execution = upload.send(first, next, async |messages| {
        results.upload_results(caller.call_within(UPLOAD_TIMEOUT, messages)).await
    });
    let execution = Streamed::of(execution.await?).await?;
    Ok(Created(location(&execution.first), execution))
}
