//! `/api/projects/{projectId}/files`.

use assay_auth::Caller;
use assay_proto::catalog::{
    DeleteFileRequest, DownloadFileRequest, GetFileRequest, ListFilesRequest, StoredFile,
};
use axum::{extract::State, response::Response};
use http::StatusCode;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    contents,
    list::{List, Listing},
    path::Path,
    problem::Problem,
    query::Query,
    range::Wanted,
    response::{Created, Json, Resource},
    services::{Files, Services},
    upload::{FileUpload, UPLOAD_TIMEOUT},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get, delete))
}

/// Returns the routes whose duration depends on the connection.
pub(super) fn slow_routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(upload)).routes(routes!(download))
}

impl Resource for StoredFile {}

/// The files to list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct FileFilter {
    /// Return only files with this SHA-256, in hexadecimal digits.
    #[param(example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")]
    sha256: Option<String>,
}

/// Lists the files of a project, newest first.
///
/// `q` searches in their names.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/files", operation_id = "list_files", tag = "Files",
    params(FileFilter, Listing),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.FileService/ListFiles"))),
    responses((status = OK, description = "The files", body = [StoredFile])),
)]
async fn list(
    State(mut files): State<Files>,
    caller: Caller,
    Path(project_id): Path<String>,
    Query(FileFilter { sha256 }): Query<FileFilter>,
    listing: Listing,
) -> Result<List, Problem> {
    let request = ListFilesRequest { project_id, page: Some(listing.page()), sha256 };
    listing.respond(files.list_files(caller.call(request)).await?).await
}

/// Returns a file without its contents.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/files/{fileId}", operation_id = "get_file",
    tag = "Files",
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.FileService/GetFile"))),
    responses((status = OK, description = "The file", body = StoredFile)),
)]
async fn get(
    State(mut files): State<Files>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<Json<StoredFile>, Problem> {
    let request = GetFileRequest { project_id, id };
    Ok(Json(files.get_file(caller.call(request)).await?.into_inner()))
}

/// A form with a file.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only documents the form, which is streamed")]
pub(super) struct FileInput {
    /// The file, in a field of any name. Its name and media type are those of the field.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

/// Stores a file in a project.
///
/// The body is the file itself, with its name in `X-File-Name`, or a form with one file. With a SHA-256 in
/// `Repr-Digest`, `Content-Digest` or `Digest`, a file that has not arrived as it was sent is rejected with
/// 422. A file may have up to 5 GiB, unless the operator has set another limit. The upload may take as long
/// as it needs, without pauses of more than 20 seconds.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/files", operation_id = "upload_file", tag = "Files",
    params(
        ("X-File-Name" = Option<String>, Header, description = "The name of the file, without a path; \
            percent-encoded if it is not ASCII. Required unless the body is a form",
            example = "web-shop-2.4.1.msi"),
        ("Repr-Digest" = Option<String>, Header, description = "The SHA-256 of the file",
            example = "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"),
    ),
    request_body(content = FileInput, content_type = "multipart/form-data",
        description = "A form with the file. The file itself as the body is accepted, too, with any other media \
            type and its name in `X-File-Name`",
        example = json!({"file": "MSI"})),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.FileService/UploadFile"))),
    responses((status = CREATED, description = "The file has been stored", body = StoredFile)),
)]
async fn upload(
    State(mut files): State<Files>,
    caller: Caller,
    Path(project_id): Path<String>,
    upload: FileUpload,
) -> Result<Created<Json<StoredFile>>, Problem> {
    let files_of_project = format!("/api/projects/{project_id}/files");
    let file = upload.send(project_id, async |messages| {
        files.upload_file(caller.call_within(UPLOAD_TIMEOUT, messages)).await
    });
    let file = file.await?;
    Ok(Created(format!("{files_of_project}/{}", file.id), Json(file)))
}

/// Returns the contents of a file, or a range of them.
///
/// `Range` may ask for one range. With `If-Range`, the whole file is returned if it is not the one with this
/// entity tag. Browsers save the file, and run nothing in it.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/files/{fileId}/contents",
    operation_id = "download_file", tag = "Files",
    params(
        ("Range" = Option<String>, Header, description = "The range to return",
            example = "bytes=0-1023"),
        ("If-Range" = Option<String>, Header, description = "The entity tag that the range is of",
            example = "\"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\""),
    ),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.FileService/DownloadFile"))),
    responses(
        (status = OK, description = "The contents", body = String,
            content_type = "application/octet-stream", example = json!("MSI")),
        (status = PARTIAL_CONTENT, description = "The range of the contents", body = String,
            content_type = "application/octet-stream", example = json!("M")),
    ),
)]
async fn download(
    State(mut files): State<Files>,
    caller: Caller,
    Wanted { range, if_tag: if_sha256, head_only }: Wanted,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let request = DownloadFileRequest { project_id, id, range, if_sha256, head_only };
    contents::respond(files.download_file(caller.call(request)).await?.into_inner()).await
}

/// Deletes a file. Fails while a record refers to it.
#[utoipa::path(
    delete, path = "/api/projects/{projectId}/files/{fileId}", operation_id = "delete_file",
    tag = "Files",
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.FileService/DeleteFile"))),
    responses((status = NO_CONTENT, description = "The file has been deleted")),
)]
async fn delete(
    State(mut files): State<Files>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    files.delete_file(caller.call(DeleteFileRequest { project_id, id })).await?;
    Ok(StatusCode::NO_CONTENT)
}
