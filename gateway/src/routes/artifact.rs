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
use http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG,
};
use serde::Deserialize;
use tonic::{Response as Reply, Status, Streaming};
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::media;
use crate::{
    body::Bounds,
    contents, download,
    list::{List, Listing},
    path::{Path, ShortRoutes},
    problem::Problem,
    query::Query,
    range::Wanted,
    response::{Json, Resource},
    services::{ArtifactFiles, Services},
    upload::{Announced, Chunk, Messages, UPLOAD_TIMEOUT, Upload, is_form},
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
    announced: Announced,
    upload: Upload,
}

impl<S: Sync> FromRequest<S> for ArtifactUpload {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let announced = Announced::of(request.headers())?;
        if is_form(request.headers()) {
            let (content_type, upload) = Upload::only_file(request).await?;
            return Ok(Self { content_type, announced, upload });
        }
        let content_type = request.headers().get(CONTENT_TYPE).map(|value| value.to_str());
        let content_type = content_type.transpose().unwrap_or_default().unwrap_or_default();
        let content_type = content_type.to_owned();
        Ok(Self { content_type, announced, upload: Upload::file_within(request, Bounds::FILE)? })
    }
}

impl ArtifactUpload {
    /// Sends the file to a service, and returns the stored artifact. A call begins its response before the file
    /// has arrived, so only pauses of the client are limited, not the duration of an upload.
    async fn send(
        self,
        target: UploadArtifactTarget,
        call: impl AsyncFnOnce(
            Messages<UploadArtifactRequest>,
        ) -> Result<Reply<Streaming<Artifact>>, Status>,
    ) -> Result<Artifact, Problem> {
        let Self { content_type, announced: Announced { size, sha256 }, upload } = self;
        let target = UploadArtifactTarget { content_type, size, sha256, ..target };
        let first = UploadArtifactRequest { target: Some(target), ..Default::default() };
        let next =
            |Chunk { bytes, last, .. }| UploadArtifactRequest { target: None, chunk: bytes, last };
        let stored = upload
            .send(first, next, async |messages| call(messages).await?.into_inner().message().await);
        stored.await?.ok_or_else(Problem::internal)
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

/// Stores a file for the results of an execution in mode `External`.
///
/// Results can refer to the file by its name wherever they can have a link. A file with the same
/// name is replaced. A file may have up to 5 GiB, unless the operator has set another limit. The upload may take
/// as long as it needs, without pauses of more than 20 seconds. With a SHA-256 in `Repr-Digest`, a file that has not
/// arrived as it was sent is rejected with 422.
#[utoipa::path(
    put, path = "/api/projects/{projectId}/executions/{executionId}/results/artifacts/{name}",
    operation_id = "upload_artifact", tag = "Results",
    params(
        ("name" = String, Path, description = "The name of the file: at most 200 letters, \
            digits, `.`, `_` and `-`", example = "payment.log"),
        ("Repr-Digest" = Option<String>, Header, description = "The SHA-256 of the file, unless the body is a form",
            example = "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"),
    ),
    request_body(content = media::ArtifactInput, content_type = "multipart/form-data",
        description = media::ARTIFACT, example = json!({"file": media::LOG})),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ArtifactService/UploadArtifact"))),
    responses((status = OK, description = "The file has been stored", body = Artifact)),
)]
async fn upload(
    State(mut artifacts): State<ArtifactFiles>,
    caller: Caller,
    Path((project_id, execution_id, name)): Path<(String, String, String)>,
    upload: ArtifactUpload,
) -> Result<Json<Artifact>, Problem> {
    let target = UploadArtifactTarget { project_id, execution_id, name, ..Default::default() };
    let artifact = upload.send(target, async |messages| {
        artifacts.upload_artifact(caller.call_within(UPLOAD_TIMEOUT, messages)).await
    });
    Ok(Json(artifact.await?))
}

/// Stores a file for the results of a lease.
///
/// Results can refer to the file by its name wherever they can have a link. A file with the same
/// name is replaced. The limits are those of files of executions. The names `live.log` and `live-{leaseId}.log` are
/// reserved for the live log.
#[utoipa::path(
    put, path = "/api/automation/leases/{leaseId}/artifacts/{name}",
    operation_id = "upload_artifact_of_lease", tag = "Automation",
    params(
        ("name" = String, Path, description = "The name of the file: at most 200 letters, \
            digits, `.`, `_` and `-`", example = "payment.log"),
        ("Repr-Digest" = Option<String>, Header, description = "The SHA-256 of the file, unless the body is a form",
            example = "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"),
    ),
    request_body(content = media::ArtifactInput, content_type = "multipart/form-data",
        description = media::ARTIFACT, example = json!({"file": media::LOG})),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ArtifactService/UploadArtifactOfLease"))),
    responses((status = OK, description = "The file has been stored", body = Artifact)),
)]
async fn upload_of_lease(
    State(mut artifacts): State<ArtifactFiles>,
    caller: Caller,
    Path((lease_id, name)): Path<(String, String)>,
    upload: ArtifactUpload,
) -> Result<Json<Artifact>, Problem> {
    let target = UploadArtifactTarget { lease_id, name, ..Default::default() };
    let artifact = upload.send(target, async |messages| {
        artifacts.upload_artifact_of_lease(caller.call_within(UPLOAD_TIMEOUT, messages)).await
    });
    Ok(Json(artifact.await?))
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
/// Instances contain the links, which expire. `Range` may ask for one range. With `If-Range`, the whole file is
/// returned if it is not the one with this entity tag. A whole text may be compressed, and has no entity tag.
#[utoipa::path(
    get, path = "/api/artifacts/{artifactId}/{name}",
    operation_id = "download_artifact", tag = "Results",
    params(
        ("name" = String, Path, description = "The name of the file", example = "payment.log"),
        ("Range" = Option<String>, Header, description = "The range to return",
            example = "bytes=0-1023"),
        ("If-Range" = Option<String>, Header, description = "The entity tag that the range is of",
            example = "\"019cade2-11c0-7e81-9ed2-4af6c6434ad2\""),
        SignedLink,
    ),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ArtifactService/DownloadArtifact"))),
    responses(
        (status = OK, description = "The file", body = String,
            content_type = "application/octet-stream",
            example = json!(media::LOG)),
        (status = PARTIAL_CONTENT, description = "The range of the file", body = String,
            content_type = "application/octet-stream", example = json!("0")),
    ),
)]
async fn download(
    State(mut artifacts): State<ArtifactFiles>,
    Wanted { range, if_tag: if_id, head_only }: Wanted,
    Path((id, name)): Path<(String, String)>,
    Query(SignedLink { customer, expires, share, signature }): Query<SignedLink>,
) -> Result<Response, Problem> {
    let disposition = format!("attachment; filename=\"{}\"", file_name(&name));
    // A value that is not a number counts as expired.
    let expires = expires.parse().unwrap_or_default();
    let tag = format!("\"{id}\"");
    let request = DownloadArtifactRequest {
        id,
        name,
        customer_id: customer,
        expires,
        signature,
        share_link_id: share,
        range,
        if_id,
        head_only,
    };
    let mut file = artifacts.download_artifact(anonymous(request)).await?.into_inner();
    let head = file.message().await?.unwrap_or_default();
    if head.is_unsatisfiable {
        return Ok(contents::unsatisfiable(head.size));
    }
    let body = download::body(file, |part| part.chunk).await?;
    let (length, content_range) = contents::extent(head.range.as_ref(), head.size);
    // A whole text is compressed, and a download that continues has the bytes as they are stored.
    let is_text = head.range.is_none() && head.content_type.starts_with("text/");
    let ranges = (!is_text).then(|| [(ETAG, tag), (ACCEPT_RANGES, "bytes".to_owned())]);
    let headers = [
        (CONTENT_TYPE, head.content_type),
        (CONTENT_LENGTH, length.to_string()),
        (CONTENT_DISPOSITION, disposition),
        // Browsers must not run scripts in the file.
        (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox".to_owned()),
    ];
    let content_range = content_range.map(|range| [(CONTENT_RANGE, range)]);
    let status = contents::status(head.range.as_ref());
    Ok((status, headers, ranges, content_range, body).into_response())
}

/// Removes characters that are not valid in the header; a valid name has none.
fn file_name(name: &str) -> String {
    let fits = |char: &char| char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '-');
    name.chars().filter(fits).collect()
}
