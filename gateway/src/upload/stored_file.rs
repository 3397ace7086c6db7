//! Uploads of one file, of which nothing is held in memory: as the body itself, or in a form.

use std::fmt::Write as _;

use assay_proto::catalog::{StoredFile, UploadFileHead, UploadFileRequest, UploadFileTarget};
use assay_proto::execution::FormFile;
use axum::extract::{FromRequest, Request, multipart::Field};
use base64::{Engine, prelude::BASE64_STANDARD};
use http::{
    HeaderMap, HeaderName,
    header::{CONTENT_LENGTH, CONTENT_TYPE},
};
use percent_encoding::percent_decode_str;
use tonic::{Response, Status, Streaming};

use super::{Chunk, Messages, Part, Upload, file_name::file_name};
use crate::{
    body::{Bounds, media_type},
    problem::Problem,
};

/// Header with the name of a file, percent-encoded if it is not ASCII.
const FILE_NAME: HeaderName = HeaderName::from_static("x-file-name");

/// Headers with the digest of a file: RFC 3230, and RFC 9530 with two names for a body without an encoding.
const DIGEST: HeaderName = HeaderName::from_static("digest");
const DIGESTS: [HeaderName; 2] =
    [HeaderName::from_static("repr-digest"), HeaderName::from_static("content-digest")];

/// The body of a request as a file that is stored as it is.
pub(crate) struct FileUpload {
    /// Name and type of the file, unless a form has them.
    head: Option<UploadFileHead>,
    /// Size that the client has announced, in bytes.
    size: Option<i64>,
    upload: Upload,
}

impl<S: Sync> FromRequest<S> for FileUpload {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let headers = request.headers();
        let size = headers.get(CONTENT_LENGTH).and_then(|size| size.to_str().ok()?.parse().ok());
        let sha256 = digest(headers)?;
        if media_type(headers).as_deref() == Some("multipart/form-data") {
            if sha256.is_some() {
                let problem = "is not checked for a form: send the file as the body itself";
                return Err(Problem::invalid("digest", problem));
            }
            let upload = Upload::form_of(request, Bounds::FILE, PART).await?;
            return Ok(Self { head: None, size, upload });
        }
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("\0"));
        let name = percent_decode_str(text(FILE_NAME).unwrap_or_default()).decode_utf8();
        let name = name.map_err(|_| Problem::invalid("name", "must be UTF-8, percent-encoded"))?;
        let head = UploadFileHead {
            name: name.into_owned(),
            content_type: text(CONTENT_TYPE).unwrap_or("application/octet-stream").to_owned(),
            sha256: sha256.unwrap_or_default(),
        };
        let upload = Upload::file_within(request, Bounds::FILE)?;
        Ok(Self { head: Some(head), size, upload })
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
        let target = UploadFileTarget { project_id, size: self.size };
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

/// Returns the SHA-256 that a client has sent, in hexadecimal digits. Digests by other algorithms are ignored.
fn digest(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let values = |name: &HeaderName| {
        let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).map(str::trim).collect::<Vec<_>>()
    };
    let plain = values(&DIGEST).into_iter().filter_map(of_sha256);
    let enclosed = DIGESTS;
    let enclosed = enclosed.iter().flat_map(&values).filter_map(of_sha256);
    let enclosed = enclosed.map(|value| {
        let value = value.split(';').next().unwrap_or_default().trim();
        value.strip_prefix(':').and_then(|value| value.strip_suffix(':')).unwrap_or("-")
    });
    let mut found = None;
    for value in plain.chain(enclosed) {
        let bytes = BASE64_STANDARD.decode(value).ok().filter(|bytes| bytes.len() == 32);
        let invalid = || Problem::invalid("digest", "must be a SHA-256 in base64");
        let bytes = bytes.ok_or_else(invalid)?;
        let hash = bytes.iter().fold(String::new(), |mut hash, byte| {
            let _ = write!(hash, "{byte:02x}");
            hash
        });
        if found.as_ref().is_some_and(|found| *found != hash) {
            return Err(Problem::invalid("digest", "must be the same in all headers"));
        }
        found = Some(hash);
    }
    Ok(found)
}

/// Returns the value of a digest by SHA-256.
fn of_sha256(digest: &str) -> Option<&str> {
    let (name, value) = digest.split_once('=')?;
    name.trim().eq_ignore_ascii_case("sha-256").then_some(value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The SHA-256 of nothing.
    const BASE64: &str = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    const HEX: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn of(pairs: &[(HeaderName, String)]) -> Result<Option<String>, Problem> {
        let pairs = pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap()));
        digest(&pairs.collect())
    }

    #[test]
    fn the_sha256_is_found_in_all_headers_for_digests() {
        let [repr, content] = DIGESTS;
        for (name, value) in [
            (DIGEST, format!("SHA-256={BASE64}")),
            (DIGEST, format!("md5=abc,sha-256={BASE64}")),
            (repr.clone(), format!("sha-256=:{BASE64}:")),
            (repr, format!("sha-512=:AAAA:, sha-256=:{BASE64}:")),
            (content, format!("sha-256=:{BASE64}:;a=b")),
        ] {
            let found = of(&[(name, value.clone())]);
            assert_eq!(found.unwrap().as_deref(), Some(HEX), "{value}");
        }
        assert_eq!(of(&[(DIGEST, "md5=abc".to_owned())]).unwrap(), None);
        assert_eq!(of(&[]).unwrap(), None);
    }

    #[test]
    fn a_broken_or_contradictory_digest_is_rejected() {
        let [repr, _] = DIGESTS;
        let zeros = BASE64_STANDARD.encode([0; 32]);
        assert!(of(&[(DIGEST, "sha-256=abc".to_owned())]).is_err());
        assert!(of(&[(repr.clone(), format!("sha-256={BASE64}"))]).is_err(), "without colons");
        let two = [(DIGEST, format!("sha-256={BASE64}")), (repr, format!("sha-256=:{zeros}:"))];
        assert!(of(&two).is_err());
    }
}
