//! `/api/projects/{projectId}/uploads`: uploads by the protocol tus.

use assay_auth::Caller;
use assay_proto::catalog::{
    AppendUploadRequest, AppendUploadTarget, CreateUploadRequest, DeleteUploadRequest,
    GetUploadRequest, Upload,
};
use axum::{
    body::Body,
    extract::{Request, State},
    middleware::map_response,
    response::{IntoResponse, Response},
    routing::{self, MethodRouter},
};
use http::{HeaderMap, Method, StatusCode, header::CONTENT_LENGTH};
use tower::ServiceExt;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    path::Path,
    problem::Problem,
    response::{Created, Json, Resource},
    services::{Files, Services},
    tus::{self, Appended, Creation, Supported},
    upload::{Chunk, DELIVERY, UPLOAD_TIMEOUT},
};

const UPLOADS: &str = "/api/projects/{projectId}/uploads";
const UPLOAD: &str = "/api/projects/{projectId}/uploads/{uploadId}";

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(get, delete))
        .route(UPLOADS, routing::options(options))
        .route(UPLOAD, routing::options(options))
        .layer(map_response(tus::mark))
}

/// Returns the routes whose duration depends on the connection.
pub(super) fn slow_routes() -> OpenApiRouter<Services> {
    let routes = OpenApiRouter::new().routes(routes!(create)).routes(routes!(append));
    routes.route(UPLOAD, routing::post(overridden)).layer(map_response(tus::mark))
}

async fn options(State(services): State<Services>) -> impl IntoResponse {
    tus::options(services.largest_file())
}

/// Serves a `POST` as the method that it stands for. Extractors see that method, so its permission counts.
async fn overridden(State(services): State<Services>, mut request: Request) -> Response {
    let method = tus::method_override(request.headers());
    let is_head = method == Some(Method::HEAD);
    if let Some(method) = method {
        *request.method_mut() = method;
    }
    let upload = routing::get(get).delete(delete).patch(append);
    let upload: MethodRouter = upload.with_state(services);
    let Ok(mut response) = upload.oneshot(request).await;
    if is_head {
        // The client has sent a POST, so the headers must not announce a body.
        response.headers_mut().remove(CONTENT_LENGTH);
        *response.body_mut() = Body::empty();
    }
    response
}

impl Resource for Upload {}

/// Begins an upload that continues where a connection has broken, by the protocol tus 1.0.
///
/// The response has the path of the upload in `Location`. A client appends to it with `PATCH`. The first bytes may be the
/// body of this request, of the type `application/offset+octet-stream`: then the upload begins only if all of the body
/// arrives. The upload is deleted when nothing was appended for 24 hours. Until then, its size counts against the quota of
/// the customer, or what has arrived if the size is not known yet. With a SHA-256 in `Repr-Digest`, a file that has not
/// arrived as it was sent is rejected with 422 at its end.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/uploads", operation_id = "create_upload",
    tag = "Files",
    params(
        ("Tus-Resumable" = String, Header, description = "The version of the protocol",
            example = "1.0.0"),
        ("Upload-Length" = Option<i64>, Header, description = "The size of the file, in bytes. Required without \
            `Upload-Defer-Length`", example = 48_234_496),
        ("Upload-Defer-Length" = Option<i64>, Header, description = "1 if a `PATCH` has the size of the file, \
            instead of this request", example = 1),
        ("Upload-Metadata" = String, Header, description = "Pairs of a key and a value in base64, separated by \
            commas: `filename` is the name of the file, without a path, and `filetype` its media type, if it is known",
            example = "filename d2ViLXNob3AtMi40LjEubXNp,filetype YXBwbGljYXRpb24veC1tc2k="),
        ("Repr-Digest" = Option<String>, Header, description = "The SHA-256 of the file",
            example = "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"),
    ),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.FileService/CreateUpload"))),
    responses((status = CREATED, description = "The upload has begun", body = Upload)),
)]
async fn create(
    State(files): State<Files>,
    caller: Caller,
    _: Supported,
    Path(project_id): Path<String>,
    creation: Creation,
) -> Result<Created<(HeaderMap, Json<Upload>)>, Problem> {
    let upload = begin(files, &caller, project_id, creation).await?;
    let path = format!("/api/projects/{}/uploads/{}", upload.project_id, upload.id);
    Ok(Created(path, (tus::headers(&upload), Json(upload))))
}

/// Begins an upload, with its first bytes if the request has some.
async fn begin(
    mut files: Files,
    caller: &Caller,
    project_id: String,
    Creation { upload, first }: Creation,
) -> Result<Upload, Problem> {
    let creation = Some(upload);
    if let Some(first) = first {
        let target = AppendUploadTarget { project_id, creation, ..AppendUploadTarget::default() };
        return send(files, caller, target, first).await;
    }
    let created = files.create_upload(caller.call(CreateUploadRequest { project_id, creation }));
    let created = created.await.map_err(|status| Problem::from(status).of_parameters())?;
    Ok(created.into_inner())
}

/// Sends a body that is appended to an upload.
async fn send(
    mut files: Files,
    caller: &Caller,
    target: AppendUploadTarget,
    Appended { offset, length, size, checksum, body }: Appended,
) -> Result<Upload, Problem> {
    let (checksum_algorithm, checksum) = checksum;
    let target =
        AppendUploadTarget { offset, length, size, checksum_algorithm, checksum, ..target };
    let first = AppendUploadRequest { target: Some(target), ..AppendUploadRequest::default() };
    let next = |Chunk { bytes, last, .. }| AppendUploadRequest { target: None, chunk: bytes, last };
    let upload = body.deliver(first, next, DELIVERY, async |messages| {
        let messages = caller.call_within(UPLOAD_TIMEOUT, messages);
        files.append_upload(messages).await?.into_inner().message().await
    });
    upload.await?.ok_or_else(Problem::internal)
}

/// Returns an upload, with the number of bytes that are stored.
///
/// `HEAD` returns the same in headers, as the protocol tus has them. When all bytes have arrived, `FileId` is the file that
/// the upload has become, for 24 hours.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/uploads/{uploadId}", operation_id = "get_upload",
    tag = "Files",
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.FileService/GetUpload"))),
    responses((status = OK, description = "The upload", body = Upload)),
)]
async fn get(
    State(mut files): State<Files>,
    caller: Caller,
    _: Supported,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<(HeaderMap, Json<Upload>), Problem> {
    let request = GetUploadRequest { project_id, id };
    let upload = files.get_upload(caller.call(request)).await?.into_inner();
    Ok((tus::headers(&upload), Json(upload)))
}

/// Appends to an upload.
///
/// Bytes that arrive before a connection breaks are stored, and `Upload-Offset` of the upload shows where to continue.
/// An upload without a size gets it by `Upload-Length`, with the last bytes or after them, and never another one. With
/// the last byte, the upload becomes a file: `Content-Location` and `Assay-File-Id` of the response show it. One
/// request at a time can append to an upload; another one is rejected with 409. With a checksum, the body is stored as
/// a whole or not at all. A client that cannot send `PATCH`, `HEAD` or `DELETE` sends `POST` with the method in
/// `X-HTTP-Method-Override`.
#[utoipa::path(
    patch, path = "/api/projects/{projectId}/uploads/{uploadId}",
    operation_id = "append_upload", tag = "Files",
    params(
        ("Tus-Resumable" = String, Header, description = "The version of the protocol",
            example = "1.0.0"),
        ("Upload-Offset" = i64, Header, description = "The number of bytes that are stored",
            example = 0),
        ("Upload-Length" = Option<i64>, Header, description = "The size of the file in bytes, if the upload has \
            none yet", example = 48_234_496),
        ("Upload-Checksum" = Option<String>, Header, description = "The SHA-1 or SHA-256 of the body, in base64",
            example = "sha256 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
    ),
    request_body(content = String, content_type = "application/offset+octet-stream",
        description = "The next bytes of the file", example = json!("MSI")),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.FileService/AppendUpload"))),
    responses((status = NO_CONTENT, description = "The body has been appended")),
)]
async fn append(
    State(files): State<Files>,
    caller: Caller,
    _: Supported,
    Path((project_id, id)): Path<(String, String)>,
    appended: Appended,
) -> Result<(StatusCode, HeaderMap), Problem> {
    let target = AppendUploadTarget { project_id, id, ..AppendUploadTarget::default() };
    let upload = send(files, &caller, target, appended).await?;
    Ok((StatusCode::NO_CONTENT, tus::headers(&upload)))
}

/// Deletes an upload with its bytes. A file that it has become stays.
#[utoipa::path(
    delete, path = "/api/projects/{projectId}/uploads/{uploadId}",
    operation_id = "delete_upload", tag = "Files",
    params(
        ("Tus-Resumable" = String, Header, description = "The version of the protocol",
            example = "1.0.0"),
    ),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.FileService/DeleteUpload"))),
    responses((status = NO_CONTENT, description = "The upload has been deleted")),
)]
async fn delete(
    State(mut files): State<Files>,
    caller: Caller,
    _: Supported,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    files.delete_upload(caller.call(DeleteUploadRequest { project_id, id })).await?;
    Ok(StatusCode::NO_CONTENT)
}
