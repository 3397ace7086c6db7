//! The names and values of the headers of tus.

use std::collections::HashMap;

use assay_digest::hex;
use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::problem::Problem;

pub(super) const RESUMABLE: HeaderName = HeaderName::from_static("tus-resumable");
pub(super) const VERSIONS: HeaderName = HeaderName::from_static("tus-version");
pub(super) const OFFSET: HeaderName = HeaderName::from_static("upload-offset");
pub(super) const LENGTH: HeaderName = HeaderName::from_static("upload-length");
/// Whether the client announces the length later.
pub(super) const DEFER_LENGTH: HeaderName = HeaderName::from_static("upload-defer-length");
pub(super) const METADATA: HeaderName = HeaderName::from_static("upload-metadata");
pub(super) const CHECKSUM: HeaderName = HeaderName::from_static("upload-checksum");
pub(super) const EXPIRES: HeaderName = HeaderName::from_static("upload-expires");
/// The method that a `POST` of a client stands for, if the client or a proxy knows no other methods.
pub(super) const METHOD_OVERRIDE: HeaderName = HeaderName::from_static("x-http-method-override");
/// Id of the file that an upload has become.
pub(super) const FILE_ID: HeaderName = HeaderName::from_static("assay-file-id");

/// Returns the text of a header, if it is there.
pub(super) fn text<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'h str>, Problem> {
    let value = headers.get(name).map(HeaderValue::to_str).transpose();
    value.map_err(|_| Problem::malformed(format!("{name}: must be ASCII")))
}

/// Returns the number of bytes in a header.
pub(super) fn number(headers: &HeaderMap, name: &HeaderName) -> Result<i64, Problem> {
    let value = text(headers, name)?;
    let digits = value.filter(|value| value.bytes().all(|byte| byte.is_ascii_digit()));
    let number = digits.and_then(|digits| digits.parse().ok());
    number.ok_or_else(|| Problem::malformed(format!("{name}: a number of bytes is required")))
}

/// Returns the size of the file to upload in bytes; none if the client announces it later.
pub(super) fn length(headers: &HeaderMap) -> Result<Option<i64>, Problem> {
    match headers.get(DEFER_LENGTH) {
        None => number(headers, &LENGTH).map(Some),
        Some(later) if later == "1" && !headers.contains_key(LENGTH) => Ok(None),
        Some(_) => {
            let problem = "upload-defer-length: must be 1, without upload-length";
            Err(Problem::malformed(problem))
        }
    }
}

/// Parses the checksum of a body: the name of its algorithm, and the value in base64. Returns the value in hexadecimal
/// digits.
pub(super) fn checksum(text: &str) -> Result<(String, String), Problem> {
    let value = text.split_once(' ').and_then(|(algorithm, value)| {
        let value = BASE64_STANDARD.decode(value.trim()).ok()?;
        Some((algorithm.to_owned(), hex(&value))).filter(|(algorithm, _)| !algorithm.is_empty())
    });
    let problem =
        "upload-checksum: must be the name of an algorithm, a space and the checksum in base64";
    value.ok_or_else(|| Problem::malformed(problem))
}

/// Parses metadata: pairs of a key and a value in base64, separated by commas.
pub(super) fn pairs(metadata: &str) -> Result<HashMap<&str, Vec<u8>>, Problem> {
    let mut pairs = HashMap::new();
    for pair in metadata.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once(' ').unwrap_or((pair, ""));
        let value = BASE64_STANDARD.decode(value.trim()).map_err(|_| {
            Problem::invalid("metadata", format!("the value of {key} must be base64"))
        })?;
        if pairs.insert(key, value).is_some() {
            let problem = format!("{key} must be there once");
            return Err(Problem::invalid("metadata", problem));
        }
    }
    Ok(pairs)
}
