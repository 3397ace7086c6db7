//! `…/results`: results of test tools, streamed to the execution service.

use assay_auth::Caller;
use assay_proto::execution::{
    AddReportRequest, AddReportTarget, Execution, InstanceResultInput, ReportResultsRequest,
    ReportResultsTarget, ReportedResults, UploadResultsRequest, UploadResultsTarget,
};
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    execution::location,
    media::{self, ReportUpload, ResultsUpload},
};
use crate::{
    idempotency::IdempotencyKey,
    path::{Path, ShortRoutes},
    problem::Problem,
    query::OnlyQuery,
    response::{Created, Json, Resource, Streamed},
    services::{Results, Services},
    upload::{Chunk, UPLOAD_TIMEOUT},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes_also_short(routes!(report))
        .routes_also_short(routes!(add))
        .routes(routes!(upload))
}

impl Resource for ReportedResults {}

/// Adds results to an execution in mode `External`, all or none.
///
/// A request has at most 10,000 results, in a JSON array or one per line. Reporting a result again
/// has no effect. An open execution adopts test cases that it does not have. The response has the
/// number of new results.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/executions/{executionId}/results",
    operation_id = "report_results", tag = "Results",
    request_body(content = Vec<InstanceResultInput>,
        description = "The results of the instances. The same as `application/x-ndjson` has one per line."),
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

/// The reporter of a report.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ReporterQuery {
    /// The name of the reporter, such as a shard. A test that the reporter has reported before is
    /// retried: this report has further attempts at it. Without a name, the tests of each report
    /// are instances of their own.
    #[param(min_length = 1, example = "shard-1")]
    reporter: Option<String>,
    /// Parameters of all tests of the report, such as the operating system.
    #[param(example = "OS=linux")]
    variant: Option<String>,
    /// Whether the sound tests of a file that is broken or ends early are kept; false by default. The
    /// execution then has an entry for the rest, which is `Aborted`.
    #[param(example = true)]
    partial: Option<bool>,
}

/// Adds the report of a test tool to an open execution, all or nothing.
///
/// Formats and test cases are those of uploads to a test set. Adding the same report again has no
/// effect. The response has the number of new attempts. Other parameters than these are refused, and so is an empty
/// `reporter`.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/executions/{executionId}/reports",
    operation_id = "add_report", tag = "Results", params(ReporterQuery),
    request_body(content = media::ReportsInput, content_type = "multipart/form-data",
        description = media::REPORTS, example = json!({"file": media::EXAMPLE})),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ResultService/AddReport"))),
    responses((status = OK, description = "The number of attempts", body = ReportedResults)),
)]
async fn add(
    State(mut results): State<Results>,
    caller: Caller,
    Path((project_id, execution_id)): Path<(String, String)>,
    OnlyQuery(ReporterQuery { reporter, variant, partial }): OnlyQuery<ReporterQuery>,
    ReportUpload(upload): ReportUpload,
) -> Result<Json<ReportedResults>, Problem> {
    let target = Some(AddReportTarget { project_id, execution_id, reporter, variant, partial });
    let first = AddReportRequest { target, ..Default::default() };
    let next =
        |Chunk { bytes, file, last }| AddReportRequest { target: None, chunk: bytes, file, last };
    let added = upload.send(first, next, async |messages| {
        results.add_report(caller.call_within(UPLOAD_TIMEOUT, messages)).await
    });
    Ok(Json(added.await?.into_inner()))
}

/// The subject, environment, tags and origin of a test run.
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
    /// The branch of the tested software.
    #[param(example = "main")]
    branch: Option<String>,
    /// The commit of the tested software.
    #[param(example = "3f2c1d0")]
    commit: Option<String>,
    /// The build of the tested software, or the run of the CI system.
    #[param(example = "1205")]
    build: Option<String>,
    /// A link to the run of the CI system.
    #[param(example = "https://ci.example.com/runs/1205")]
    ci_url: Option<String>,
    /// Whether the sound tests of a file that is broken or ends early are kept; false by default. The
    /// execution then has an entry for the rest, which is `Aborted`.
    #[param(example = true)]
    partial: Option<bool>,
}

/// Creates a completed execution from the report of a test run.
///
/// The format of a file is recognized by its contents: JUnit XML, CTRF, Playwright JSON, Jest,
/// Vitest, Mocha, Mochawesome and pytest JSON, Cucumber JSON and messages, `go test -json`, TAP, Robot
/// Framework, NUnit 2 and 3, Open Test Reporting, xUnit.net, TRX, TestNG, or a zip archive with Allure
/// results or a blob report of Playwright. Attachments within them become artifacts of the execution. Test cases
/// are matched by their identifier: the class, file or feature, a dot and the name, or only
/// the name. New test cases are added to the project and to the test set. A client that has not received a
/// response can retry with the same files and the same `Idempotency-Key`, which returns the same
/// execution. Other parameters than these are refused.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/testsets/{testSetId}/results",
    operation_id = "upload_results", tag = "Results", params(TestRunQuery, IdempotencyKey),
    request_body(content = media::ReportsInput, content_type = "multipart/form-data",
        description = media::REPORTS, example = json!({"file": media::EXAMPLE})),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ResultService/UploadResults"))),
    responses((status = CREATED, description = "The execution", body = Execution)),
)]
async fn upload(
    State(mut results): State<Results>,
    caller: Caller,
    Path((project_id, test_set_id)): Path<(String, String)>,
    OnlyQuery(run): OnlyQuery<TestRunQuery>,
    IdempotencyKey(idempotency_key): IdempotencyKey,
    ReportUpload(upload): ReportUpload,
) -> Result<Created<Streamed<Execution>>, Problem> {
    let target = UploadResultsTarget {
        project_id,
        test_set_id,
        subject_id: run.subject_id,
        environment_id: run.environment_id,
        tags: run.tags,
        branch: run.branch,
        commit: run.commit,
        build: run.build,
        ci_url: run.ci_url,
        partial: run.partial,
        idempotency_key,
    };
    let first = UploadResultsRequest { target: Some(target), ..Default::default() };
    let next = |Chunk { bytes, file, last }| UploadResultsRequest {
        target: None,
        chunk: bytes,
        file,
        last,
    };
    let execution = upload.send(first, next, async |messages| {
        results.upload_results(caller.call_within(UPLOAD_TIMEOUT, messages)).await
    });
    let execution = Streamed::of(execution.await?).await?;
    Ok(Created(location(&execution.first), execution))
}
