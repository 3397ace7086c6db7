//! Uploads of artifacts.

use std::time::Duration;

use assay_digest::repr_digest;
use reqwest::{Body, RequestBuilder, header::CONTENT_LENGTH};

use crate::folder::Contents;

/// Timeout of an upload.
const UPLOAD: Duration = Duration::from_hours(24);

/// Adds a file of the export to a request, with its SHA-256: Assay refuses one that has changed since the export was
/// verified.
pub(super) fn with_contents(request: RequestBuilder, contents: &Contents) -> RequestBuilder {
    let request = request.timeout(UPLOAD).header(CONTENT_LENGTH, contents.bytes);
    let request = request.header("Repr-Digest", repr_digest(&contents.sha256));
    request.body(Body::wrap_stream(contents.clone().chunks(0..contents.bytes)))
}
