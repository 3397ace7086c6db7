//! Artifacts: files that belong to results.

use assay_auth::{Caller, anonymous};
use assay_proto::execution::{
    Artifact, ArtifactEntry, DownloadArtifactRequest, ListArtifactsRequest, UploadArtifactRequest,
    UploadArtifactTarget,
};
use axum::{
    extract::{FromRequest, Request, State},
    response::{IntoResponse, Response},
};
use http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::media;
use crate::{
    body::media_type,
    download,
    list::{List, Listing},
    path::{Path, ShortRoutes},
    problem::Problem,
    query::Query,
    response::{Json, Resource},
    services::{ArtifactFiles, Services},
    upload::{Chunk, UPLOAD_TIMEOUT, Upload},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes_also_short(routes!(list))
}

/// Returns the routes whose duration depends on the connection.
pub(super) fn slow_routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes_also_short(routes!(upload))
        .routes(routes!(upload_of_lease))
        .routes(routes!(download))
}

impl Resource for Artifact {}

/// The body of a request as a file, or the file of a form, and its media type.
struct ArtifactUpload {
    content_type: String,
    upload: Upload,
}

impl<S: Sync> FromRequest<S> for ArtifactUpload {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        if media_type(request.headers()).as_deref() == Some("multipart/form-data") {
            let (content_type, upload) = Upload::only_file(request).await?;
            return Ok(Self { content_type, upload });
        }
        let content_type = request.headers().get(CONTENT_TYPE).map(|value| value.to_str());
        let content_type = content_type.transpose().unwrap_or_default().unwrap_or_default();
        let content_type = content_type.to_owned();
        Ok(Self { content_type, upload: Upload::file(request)? })
    }
}

/// Lists the artifacts of an execution, oldest first, with links to their files.
///
/// `q` searches in their names.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/executions/{executionId}/results/artifacts",
    operation_id = "list_artifacts", tag = "Results", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ArtifactService/ListArtifacts"))),
    responses((status = OK, description = "The artifacts", body = [ArtifactEntry])),
)]
async fn list(
    State(mut artifacts): State<ArtifactFiles>,
    caller: Caller,
    Path((project_id, execution_id)): Path<(String, String)>,
    listing: Listing,
) -> Result<List, Problem> {
    let page = Some(listing.page());
    let request = ListArtifactsRequest { project_id, execution_id, page };
    listing.respond(artifacts.list_artifacts(caller.call(request)).await?).await
}

/// Stores a file of at most 32 MiB for the results of an execution in mode `External`.
///
/// Results can refer to the file by its name wherever they can have a link. A file with the same
/// name is replaced.
#[utoipa::path(
    put, path = "/api/projects/{projectId}/executions/{executionId}/results/artifacts/{name}",
    operation_id = "upload_artifact", tag = "Results",
    params(("name" = String, Path, description = "The name of the file: at most 200 letters, \
        digits, `.`, `_` and `-`", example = "payment.log")),
    request_body(content = media::ArtifactInput, content_type = "multipart/form-data",
        description = media::ARTIFACT, example = json!({"file": media::LOG})),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ArtifactService/UploadArtifact"))),
    responses((status = OK, description = "The file has been stored", body = Artifact)),
)]
async fn upload(
    State(mut artifacts): State<ArtifactFiles>,
    caller: Caller,
    Path((project_id, execution_id, name)): Path<(String, String, String)>,
    ArtifactUpload { content_type, upload }: ArtifactUpload,
) -> Result<Json<Artifact>, Problem> {
    let target =
        UploadArtifactTarget { project_id, execution_id, name, content_type, ..Default::default() };
    let artifact = upload.send(first(target), next, async |messages| {
        artifacts.upload_artifact(caller.call_within(UPLOAD_TIMEOUT, messages)).await
    });
    Ok(Json(artifact.await?.into_inner()))
}

/// Stores a file of at most 32 MiB for the results of a lease.
///
/// Results can refer to the file by its name wherever they can have a link. A file with the same
/// name is replaced.
#[utoipa::path(
    put, path = "/api/automation/leases/{leaseId}/artifacts/{name}",
    operation_id = "upload_artifact_of_lease", tag = "Automation",
    params(("name" = String, Path, description = "The name of the file: at most 200 letters, \
        digits, `.`, `_` and `-`", example = "payment.log")),
    request_body(content = media::ArtifactInput, content_type = "multipart/form-data",
        description = media::ARTIFACT, example = json!({"file": media::LOG})),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ArtifactService/UploadArtifactOfLease"))),
    responses((status = OK, description = "The file has been stored", body = Artifact)),
)]
async fn upload_of_lease(
    State(mut artifacts): State<ArtifactFiles>,
    caller: Caller,
    Path((lease_id, name)): Path<(String, String)>,
    ArtifactUpload { content_type, upload }: ArtifactUpload,
) -> Result<Json<Artifact>, Problem> {
    let target = UploadArtifactTarget { lease_id, name, content_type, ..Default::default() };
    let artifact = upload.send(first(target), next, async |messages| {
        artifacts.upload_artifact_of_lease(caller.call_within(UPLOAD_TIMEOUT, messages)).await
    });
    Ok(Json(artifact.await?.into_inner()))
}

fn first(target: UploadArtifactTarget) -> UploadArtifactRequest {
    UploadArtifactRequest { target: Some(target), ..Default::default() }
}

fn next(Chunk { bytes, last, .. }: Chunk) -> UploadArtifactRequest {
    UploadArtifactRequest { target: None, chunk: bytes, last }
}

/// The parameters of a signed link.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct SignedLink {
    /// The customer that the file belongs to.
    #[serde(default)]
    #[param(format = Uuid)]
    customer: String,
    /// When the link expires, in seconds since 1970.
    #[serde(default)]
    #[param(value_type = i64, example = 1_772_447_400)]
    expires: String,
    /// The share link that the link depends on, if it is part of a shared execution.
    #[param(format = Uuid)]
    share: Option<String>,
    /// The signature of the link.
    #[serde(default)]
    #[param(example = "3q2-7wQ5Yk")]
    signature: String,
}

/// Returns the file of a signed link.
///
/// Instances contain the links, which expire.
#[utoipa::path(
    get, path = "/api/artifacts/{artifactId}/{name}",
    operation_id = "download_artifact", tag = "Results",
    params(("name" = String, Path, description = "The name of the file",
        example = "payment.log"), SignedLink),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ArtifactService/DownloadArtifact"))),
    responses(
        (status = OK, description = "The file", body = String,
            content_type = "application/octet-stream",
            example = json!(media::LOG)),
    ),
)]
async fn download(
    State(mut artifacts): State<ArtifactFiles>,
    Path((id, name)): Path<(String, String)>,
    Query(SignedLink { customer, expires, share, signature }): Query<SignedLink>,
) -> Result<Response, Problem> {
    let disposition = format!("attachment; filename=\"{}\"", file_name(&name));
    // A value that is not a number counts as expired.
    let expires = expires.parse().unwrap_or_default();
    let request = DownloadArtifactRequest {
        id,
        name,
        customer_id: customer,
        expires,
        signature,
        share_link_id: share,
    };
    let mut file = artifacts.download_artifact(anonymous(request)).await?.into_inner();
    let head = file.message().await?.unwrap_or_default();
    let body = download::body(file, |part| part.chunk).await?;
    let headers = [
        (CONTENT_TYPE, head.content_type),
        (CONTENT_LENGTH, head.size.to_string()),
        (CONTENT_DISPOSITION, disposition),
        // Browsers must not run scripts in the file.
        (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox".to_owned()),
    ];
    Ok((headers, body).into_response())
}

/// Removes characters that are not valid in the header; a valid name has none.
fn file_name(name: &str) -> String {
    let fits = |char: &char| char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '-');
    name.chars().filter(fits).collect()
}
