//! Uploads of files and artifacts.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::{Body, RequestBuilder, header::CONTENT_LENGTH};

use crate::folder::Contents;

/// Timeout of an upload.
const UPLOAD: Duration = Duration::from_hours(24);

/// Adds a file of the export to a request, with its SHA-256: Assay refuses one that has changed since the export was
/// verified.
pub(super) fn with_contents(request: RequestBuilder, contents: &Contents) -> RequestBuilder {
    let request = request.timeout(UPLOAD).header(CONTENT_LENGTH, contents.bytes);
    let request = request.header("Repr-Digest", repr_digest(&contents.sha256));
    request.body(Body::wrap_stream(contents.clone().chunks()))
}

/// Returns the header with a SHA-256 in hexadecimal digits (RFC 9530).
fn repr_digest(sha256: &str) -> String {
    let byte = |index: usize| u8::from_str_radix(sha256.get(index..index + 2)?, 16).ok();
    let bytes: Vec<u8> = (0..sha256.len()).step_by(2).filter_map(byte).collect();
    format!("sha-256=:{}:", BASE64_STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_sent_in_base64() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let expected = "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:";
        assert_eq!(repr_digest(empty), expected);
    }
}
