//! Artifacts: files that belong to results.

use assay_auth::{Caller, anonymous};
use assay_proto::execution::{
    Artifact, DownloadArtifactRequest, UploadArtifactRequest, UploadArtifactTarget,
};
use axum::{
    extract::{FromRequest, Request, State},
    response::{IntoResponse, Response},
};
use http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    answer::{Answer, Record},
    download,
    path::Path,
    problem::Problem,
    query::Query,
    services::{ArtifactFiles, Services},
    upload::{PATIENCE, Piece, Upload},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(upload))
        .routes(routes!(upload_of_lease))
        .routes(routes!(download))
}

impl Answer for Artifact {}

/// The body of a request as a file, and what it says it is.
struct File {
    content_type: String,
    upload: Upload,
}

impl<S: Sync> FromRequest<S> for File {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let content_type = request.headers().get(CONTENT_TYPE).map(|value| value.to_str());
        let content_type = content_type.transpose().unwrap_or_default().unwrap_or_default();
        let content_type = content_type.to_owned();
        Ok(Self { content_type, upload: Upload::whole(request)? })
    }
}

/// Keeps a file for the results of an execution in mode `External`.
///
/// At most 32 MiB. Results refer to it by its name, wherever they could have a link. A file of the
/// same name is replaced.
#[utoipa::path(
    put, path = "/api/projects/{projectId}/executions/{executionId}/results/artifacts/{name}",
    operation_id = "upload_artifact", tag = "Results",
    params(("name" = String, Path, description = "What results call the file: letters, digits, \
        `.`, `_` and `-`, at most 200", example = "payment.log")),
    request_body(content = String, content_type = "application/octet-stream",
        description = "The file, of any media type", example = json!("09:30:04 The bank said yes\n")),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ArtifactService/UploadArtifact"))),
    responses((status = OK, description = "The file is kept", body = Artifact)),
)]
async fn upload(
    State(mut artifacts): State<ArtifactFiles>,
    caller: Caller,
    Path((project_id, execution_id, name)): Path<(String, String, String)>,
    File { content_type, upload }: File,
) -> Result<Record<Artifact>, Problem> {
    let target =
        UploadArtifactTarget { project_id, execution_id, name, content_type, ..Default::default() };
    let artifact = upload.send(first(target), next, async |messages| {
        artifacts.upload_artifact(caller.call_within(PATIENCE, messages)).await
    });
    Ok(Record(artifact.await?.into_inner()))
}

/// Keeps a file for the results of a lease.
///
/// At most 32 MiB. Results refer to it by its name, wherever they could have a link. A file of the
/// same name is replaced.
#[utoipa::path(
    put, path = "/api/automation/leases/{leaseId}/artifacts/{name}",
    operation_id = "upload_artifact_of_lease", tag = "Automation",
    params(("name" = String, Path, description = "What results call the file: letters, digits, \
        `.`, `_` and `-`, at most 200", example = "payment.log")),
    request_body(content = String, content_type = "application/octet-stream",
        description = "The file, of any media type", example = json!("09:30:04 The bank said yes\n")),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ArtifactService/UploadArtifactOfLease"))),
    responses((status = OK, description = "The file is kept", body = Artifact)),
)]
async fn upload_of_lease(
    State(mut artifacts): State<ArtifactFiles>,
    caller: Caller,
    Path((lease_id, name)): Path<(String, String)>,
    File { content_type, upload }: File,
) -> Result<Record<Artifact>, Problem> {
    let target = UploadArtifactTarget { lease_id, name, content_type, ..Default::default() };
    let artifact = upload.send(first(target), next, async |messages| {
        artifacts.upload_artifact_of_lease(caller.call_within(PATIENCE, messages)).await
    });
    Ok(Record(artifact.await?.into_inner()))
}

fn first(target: UploadArtifactTarget) -> UploadArtifactRequest {
    UploadArtifactRequest { target: Some(target), ..Default::default() }
}

fn next(Piece { chunk, last, .. }: Piece) -> UploadArtifactRequest {
    UploadArtifactRequest { target: None, chunk, last }
}

/// What a link carries.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Access {
    /// The customer that the file belongs to.
    #[serde(default)]
    #[param(format = Uuid)]
    customer: String,
    /// When the link expires, in seconds since 1970.
    #[serde(default)]
    #[param(value_type = i64, example = 1_772_447_400)]
    expires: String,
    /// What proves that the link is one of ours.
    #[serde(default)]
    #[param(example = "3q2-7wQ5Yk")]
    signature: String,
}

/// Returns a file to whoever has a link to it. Links are in instances, and expire.
#[utoipa::path(
    get, path = "/api/artifacts/{artifactId}/{name}",
    operation_id = "download_artifact", tag = "Results",
    params(("name" = String, Path, description = "What the file is called",
        example = "payment.log"), Access),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ArtifactService/DownloadArtifact"))),
    responses(
        (status = OK, description = "The file", body = String,
            content_type = "application/octet-stream",
            example = json!("09:30:04 The bank said yes\n")),
    ),
)]
async fn download(
    State(mut artifacts): State<ArtifactFiles>,
    Path((id, name)): Path<(String, String)>,
    Query(Access { customer, expires, signature }): Query<Access>,
) -> Result<Response, Problem> {
    let disposition = format!("attachment; filename=\"{}\"", file_name(&name));
    // What is no number has long expired.
    let expires = expires.parse().unwrap_or_default();
    let request = DownloadArtifactRequest { id, name, customer_id: customer, expires, signature };
    let mut file = artifacts.download_artifact(anonymous(request)).await?.into_inner();
    let head = file.message().await?.unwrap_or_default();
    let body = download::body(file, |part| part.chunk).await?;
    let headers = [
        (CONTENT_TYPE, head.content_type),
        (CONTENT_LENGTH, head.size.to_string()),
        (CONTENT_DISPOSITION, disposition),
        // Even where a browser shows it, nothing in it runs.
        (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox".to_owned()),
    ];
    Ok((headers, body).into_response())
}

/// What can stand in a header; a valid name does.
fn file_name(name: &str) -> String {
    let fits = |char: &char| char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '-');
    name.chars().filter(fits).collect()
}
