//! Uploads of one file, of which nothing is held in memory: as the body itself, or in a form.

use assay_proto::catalog::{StoredFile, UploadFileHead, UploadFileRequest, UploadFileTarget};
use assay_proto::execution::FormFile;
use axum::extract::{FromRequest, Request, multipart::Field};
use http::{HeaderName, header::CONTENT_TYPE};
use percent_encoding::percent_decode_str;
use tonic::{Response, Status, Streaming};

use super::{Announced, Chunk, Messages, Part, Upload, announced::is_form, file_name::file_name};
use crate::{body::Bounds, problem::Problem};

/// Header with the name of a file, percent-encoded if it is not ASCII.
const FILE_NAME: HeaderName = HeaderName::from_static("x-file-name");

/// The body of a request as a file that is stored as it is.
pub(crate) struct FileUpload {
    /// Name and type of the file, unless a form has them.
    head: Option<UploadFileHead>,
    announced: Announced,
    upload: Upload,
}

impl<S: Sync> FromRequest<S> for FileUpload {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let headers = request.headers();
        let announced = Announced::of(headers)?;
        if is_form(headers) {
            let upload = Upload::form_of(request, Bounds::FILE, PART).await?;
            return Ok(Self { head: None, announced, upload });
        }
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("\0"));
        let name = percent_decode_str(text(FILE_NAME).unwrap_or_default()).decode_utf8();
        let name = name.map_err(|_| Problem::invalid("name", "must be UTF-8, percent-encoded"))?;
        let head = UploadFileHead {
            name: name.into_owned(),
            content_type: text(CONTENT_TYPE).unwrap_or("application/octet-stream").to_owned(),
            sha256: announced.sha256.clone(),
        };
        let upload = Upload::file_within(request, Bounds::FILE)?;
        Ok(Self { head: Some(head), announced, upload })
    }
}

/// A field is the file if it has a file name.
const PART: Part = |field: &Field<'_>| {
    let content_type = field.content_type().unwrap_or("application/octet-stream").to_owned();
    Some(FormFile { name: file_name(field.headers())?, content_type, ..FormFile::default() })
};

impl FileUpload {
    /// Sends the file to a project, and returns the stored file. A call begins its response before the file has
    /// arrived, so only pauses of the client are limited, not the duration of an upload.
    pub(crate) async fn send(
        self,
        project_id: String,
        call: impl AsyncFnOnce(
            Messages<UploadFileRequest>,
        ) -> Result<Response<Streaming<StoredFile>>, Status>,
    ) -> Result<StoredFile, Problem> {
        let target = UploadFileTarget { project_id, size: self.announced.size };
        let first = UploadFileRequest {
            target: Some(target),
            head: self.head,
            ..UploadFileRequest::default()
        };
        let next = |Chunk { bytes, file, last }| UploadFileRequest {
            target: None,
            chunk: bytes,
            last,
            head: file.map(|FormFile { name, content_type, .. }| UploadFileHead {
                name,
                content_type,
                sha256: String::new(),
            }),
        };
        let stored = self
            .upload
            .send(first, next, async |messages| call(messages).await?.into_inner().message().await);
        stored.await?.ok_or_else(Problem::internal)
    }
}
