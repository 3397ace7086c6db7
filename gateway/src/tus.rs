//! The headers of tus 1.0 (<https://tus.io>), the protocol of uploads that continue where a connection has broken.

mod header;

use assay_proto::{
    Timestamp,
    catalog::{self, UploadCreation},
};
use axum::{
    extract::{FromRequest, FromRequestParts, Request},
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_LOCATION, TRANSFER_ENCODING},
    request::Parts,
};

use self::header::{
    CHECKSUM, DEFER_LENGTH, EXPIRES, FILE_ID, LENGTH, METADATA, METHOD_OVERRIDE, OFFSET, RESUMABLE,
    VERSIONS, checksum, length, number, pairs, text,
};
use crate::{
    body::{Bounds, media_type},
    problem::Problem,
    upload::{Announced, Upload, refuse_digests},
};

/// The version of the protocol.
const VERSION: &str = "1.0.0";

/// The media type of a body that is appended to an upload.
pub(crate) const APPENDED: &str = "application/offset+octet-stream";

/// The media type of a file whose client states none.
const ANY_TYPE: &str = "application/octet-stream";

/// Returns what the server supports. A file has at most `largest` bytes.
pub(crate) fn options(largest: u64) -> impl IntoResponse {
    let headers = [
        ("tus-version", VERSION.to_owned()),
        (
            "tus-extension",
            "creation,creation-defer-length,creation-with-upload,expiration,checksum,termination"
                .to_owned(),
        ),
        ("tus-checksum-algorithm", "sha1,sha256".to_owned()),
        ("tus-max-size", largest.to_string()),
    ];
    (StatusCode::NO_CONTENT, headers)
}

/// Adds the version of the protocol to a response, and the supported ones to the refusal of another one.
pub(crate) async fn mark(mut response: Response) -> Response {
    let is_refused = response.status() == StatusCode::PRECONDITION_FAILED;
    let headers = response.headers_mut();
    headers.insert(RESUMABLE, HeaderValue::from_static(VERSION));
    if is_refused {
        headers.insert(VERSIONS, HeaderValue::from_static(VERSION));
    }
    response
}

/// The client speaks the version of the protocol. A GET is not part of it.
pub(crate) struct Supported;

impl<S: Sync> FromRequestParts<S> for Supported {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let is_supported = parts.headers.get(RESUMABLE).is_some_and(|version| version == VERSION);
        if is_supported || parts.method == Method::GET {
            return Ok(Self);
        }
        Err(Problem::unsupported_version())
    }
}

/// Returns the method of the protocol that a `POST` to an upload stands for, if it names one.
pub(crate) fn method_override(headers: &HeaderMap) -> Option<Method> {
    let named = headers.get(METHOD_OVERRIDE)?.as_bytes();
    let methods = [Method::HEAD, Method::PATCH, Method::DELETE];
    methods.into_iter().find(|method| method.as_str().as_bytes() == named)
}

/// An upload to begin, as the headers of its request describe it, with its first bytes if the request has some.
pub(crate) struct Creation {
    pub(crate) upload: UploadCreation,
    pub(crate) first: Option<Appended>,
}

impl<S: Sync> FromRequest<S> for Creation {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let headers = request.headers();
        let upload = creation(headers)?;
        if media_type(headers).as_deref() == Some(APPENDED) {
            return Ok(Self { upload, first: Some(Appended::at(0, None, request)?) });
        }
        if headers.contains_key(TRANSFER_ENCODING) || body_size(headers).is_some_and(|n| n > 0) {
            return Err(wrong_type());
        }
        Ok(Self { upload, first: None })
    }
}

fn creation(headers: &HeaderMap) -> Result<UploadCreation, Problem> {
    refuse_digests(headers, true)?;
    let size = length(headers)?;
    let metadata = text(headers, &METADATA)?.unwrap_or_default();
    let mut pairs = pairs(metadata)?;
    let mut value = |name: &str| {
        let utf8 = |_| Problem::invalid("metadata", format!("{name} must be UTF-8"));
        pairs.remove(name).map(String::from_utf8).transpose().map_err(utf8)
    };
    Ok(UploadCreation {
        name: value("filename")?.unwrap_or_default(),
        content_type: value("filetype")?
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| ANY_TYPE.to_owned()),
        metadata: metadata.to_owned(),
        size,
        sha256: Announced::of(headers)?.sha256,
    })
}

/// A body that is appended to an upload.
pub(crate) struct Appended {
    /// Position of its first byte.
    pub(crate) offset: i64,
    /// Size of the file in bytes, if the client announces it now.
    pub(crate) length: Option<i64>,
    /// Size that the client has announced, in bytes.
    pub(crate) size: Option<i64>,
    /// Name of the algorithm and checksum in hexadecimal digits; empty if the client has sent none.
    pub(crate) checksum: (String, String),
    pub(crate) body: Upload,
}

impl<S: Sync> FromRequest<S> for Appended {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let headers = request.headers();
        if media_type(headers).as_deref() != Some(APPENDED) {
            return Err(wrong_type());
        }
        refuse_digests(headers, false)?;
        let offset = number(headers, &OFFSET)?;
        let length = headers.contains_key(LENGTH).then(|| number(headers, &LENGTH)).transpose()?;
        Self::at(offset, length, request)
    }
}

impl Appended {
    /// Takes the body of a request, whose first byte has this position.
    fn at(offset: i64, length: Option<i64>, request: Request) -> Result<Self, Problem> {
        let headers = request.headers();
        let size = body_size(headers);
        let checksum = text(headers, &CHECKSUM)?.map(checksum).transpose()?.unwrap_or_default();
        let body = Upload::file_within(request, Bounds::FILE)?;
        Ok(Self { offset, length, size, checksum, body })
    }
}

/// Returns the size of a body that its client has announced, in bytes.
fn body_size(headers: &HeaderMap) -> Option<i64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn wrong_type() -> Problem {
    Problem::unsupported(format!("Content-Type: must be {APPENDED}"))
}

/// Returns the headers that describe an upload.
pub(crate) fn headers(upload: &catalog::Upload) -> HeaderMap {
    let expires = upload.expires_at.map(|Timestamp(time)| {
        // The format of dates in HTTP (RFC 9110).
        time.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
    });
    let file = upload.file_id.as_ref();
    let path = file.map(|id| format!("/api/projects/{}/files/{id}", upload.project_id));
    let metadata = Some(&upload.metadata).filter(|metadata| !metadata.is_empty());
    let headers = [
        (OFFSET, Some(upload.offset.to_string())),
        (LENGTH, upload.size.map(|size| size.to_string())),
        (DEFER_LENGTH, upload.size.is_none().then(|| "1".to_owned())),
        (METADATA, metadata.cloned()),
        (EXPIRES, expires),
        (CONTENT_LOCATION, path),
        (FILE_ID, file.cloned()),
    ];
    let headers = headers.into_iter();
    headers.filter_map(|(name, value)| Some((name, HeaderValue::try_from(value?).ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    fn creation(headers: &[(HeaderName, &str)]) -> Result<UploadCreation, Problem> {
        let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap()));
        super::creation(&headers.collect())
    }

    #[test]
    fn the_name_and_the_media_type_of_a_file_are_among_its_metadata() {
        let metadata = "filename UHLDvGZwbGFuLnBkZg==,filetype YXBwbGljYXRpb24vcGRm, is_draft";
        let created = creation(&[(LENGTH, "100"), (METADATA, metadata)]).unwrap();
        assert_eq!((created.name.as_str(), created.size), ("Pr\u{fc}fplan.pdf", Some(100)));
        assert_eq!(
            (created.content_type.as_str(), created.metadata.as_str()),
            ("application/pdf", metadata)
        );
        let plain = creation(&[(LENGTH, "0")]).unwrap();
        assert_eq!((plain.name.as_str(), plain.content_type.as_str()), ("", ANY_TYPE));
    }

    #[test]
    fn a_post_stands_for_methods_of_the_protocol_only() {
        let of = |method: &str| {
            let headers = HeaderMap::from_iter([(METHOD_OVERRIDE, method.parse().unwrap())]);
            method_override(&headers)
        };
        for method in [Method::HEAD, Method::PATCH, Method::DELETE] {
            assert_eq!(of(method.as_str()), Some(method));
        }
        for other in ["", "GET", "PUT", "POST", "OPTIONS", "patch"] {
            assert_eq!(of(other), None, "{other}");
        }
        assert_eq!(method_override(&HeaderMap::new()), None);
    }

    #[test]
    fn malformed_headers_are_rejected() {
        for length in ["", "-1", "+1", "1.5", "99999999999999999999", "x"] {
            assert!(creation(&[(LENGTH, length)]).is_err(), "{length}");
        }
        assert!(creation(&[]).is_err(), "the length is required");
        assert_eq!(creation(&[(DEFER_LENGTH, "1")]).unwrap().size, None);
        for deferred in ["", "0", "2", "true"] {
            assert!(creation(&[(DEFER_LENGTH, deferred)]).is_err(), "{deferred}");
        }
        assert!(creation(&[(DEFER_LENGTH, "1"), (LENGTH, "1")]).is_err(), "both");
        for metadata in ["filename ?", "filename YQ==,filename Yg==", "filename /w=="] {
            assert!(creation(&[(LENGTH, "1"), (METADATA, metadata)]).is_err(), "{metadata}");
        }
        for wrong in ["", "sha1", "sha1 ?", "sha1,YQ=="] {
            assert!(checksum(wrong).is_err(), "{wrong}");
        }
        assert_eq!(checksum("sha1 YQ==").unwrap().1, "61");
    }
}
