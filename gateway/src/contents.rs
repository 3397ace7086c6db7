//! Responses with the contents of files, whole or in ranges.

use assay_digest::repr_digest;
use assay_proto::catalog::{FileContentsBatch, FileRange};
use axum::response::{IntoResponse, Response};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{
        ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY,
        CONTENT_TYPE, ETAG,
    },
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tonic::Streaming;

use crate::{download, problem::Problem};

/// Returns the response with the contents that a service sends.
pub(crate) async fn respond(
    mut contents: Streaming<FileContentsBatch>,
) -> Result<Response, Problem> {
    let head = contents.message().await?.unwrap_or_default();
    if head.is_unsatisfiable {
        return Ok(unsatisfiable(head.file.as_ref().map_or(0, |file| file.size)));
    }
    let status = status(head.range.as_ref());
    let headers = described(&head)?;
    let body = download::body(contents, |part| part.chunk).await?;
    Ok((status, headers, body).into_response())
}

/// Returns the status of a response with this range of a file, or with all of it.
pub(crate) fn status(range: Option<&FileRange>) -> StatusCode {
    if range.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK }
}

/// Returns the number of bytes in this range of a file, or in all of it, and the header `Content-Range`, for a file of
/// this size.
pub(crate) fn extent(range: Option<&FileRange>, size: i64) -> (i64, Option<String>) {
    let Some(range) = range else { return (size, None) };
    let (first, last) = (range.first.unwrap_or_default(), range.last.unwrap_or_default());
    (last - first + 1, Some(format!("bytes {first}-{last}/{size}")))
}

/// Returns the headers of the contents that follow.
fn described(head: &FileContentsBatch) -> Result<HeaderMap, Problem> {
    let file = head.file.as_ref().ok_or_else(Problem::internal)?;
    let (length, range) = extent(head.range.as_ref(), file.size);
    let headers = [
        (CONTENT_TYPE, Some(head.served_as.clone())),
        (CONTENT_LENGTH, Some(length.to_string())),
        (CONTENT_RANGE, range),
        (CONTENT_DISPOSITION, Some(disposition(&file.name))),
        (ETAG, Some(format!("\"{}\"", file.sha256))),
        (HeaderName::from_static("repr-digest"), Some(repr_digest(&file.sha256))),
        (ACCEPT_RANGES, Some("bytes".to_owned())),
        // Browsers must not run scripts in the file.
        (CONTENT_SECURITY_POLICY, Some("default-src 'none'; sandbox".to_owned())),
    ];
    let headers = headers.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let headers = headers
        .map(|(name, value)| HeaderValue::try_from(value).map(|value| (name, value)))
        .collect::<Result<_, _>>();
    headers.map_err(|_| Problem::internal())
}

/// Returns the response to a request for a range that a file of this size does not have.
pub(crate) fn unsatisfiable(size: i64) -> Response {
    let mut response = Problem::unsatisfiable(size).into_response();
    if let Ok(range) = HeaderValue::try_from(format!("bytes */{size}")) {
        response.headers_mut().insert(CONTENT_RANGE, range);
    }
    response
}

/// Returns the header that makes browsers save a file under its name (RFC 6266), and the name in ASCII for
/// clients that know no other.
fn disposition(name: &str) -> String {
    let fits = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '-' | ' ');
    let plain: String = name.chars().map(|char| if fits(char) { char } else { '_' }).collect();
    let encoded = utf8_percent_encode(name, NON_ALPHANUMERIC);
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}")
}
