//! Bounds of bodies: size, pauses and encoding.

use std::{error::Error, time::Duration};

use axum::body::{Body, HttpBody};
use http::{
    HeaderMap,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use http_body_util::{LengthLimitError, Limited};
use tower_http::timeout::{TimeoutBody, TimeoutError};

use crate::{cause::caused_by, problem::Problem};

/// Maximum size of a body in bytes, and maximum pause between its chunks.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) size: usize,
    pub(crate) pause: Duration,
}

impl Bounds {
    pub(crate) const JSON: Self = Self { size: 1 << 20, pause: Duration::from_secs(10) };
    /// For several records, which clients may send back with all fields of responses.
    pub(crate) const RECORDS: Self = Self { size: 2 << 20, ..Self::JSON };
    /// For a record that clients may send back as they read it.
    pub(crate) const RECORD: Self = Self { size: 32 << 20, ..Self::JSON };
    pub(crate) const UPLOAD: Self = Self { size: 32 << 20, pause: Duration::from_secs(20) };
    /// For a file that is stored as it arrives. Its service limits its size.
    pub(crate) const FILE: Self = Self { size: usize::MAX, ..Self::UPLOAD };
}

/// A form has several files where one is expected.
#[derive(Debug, thiserror::Error)]
#[error("the form has several files")]
pub(crate) struct SeveralFiles;

/// A form has more bytes in front of a field than are held.
#[derive(Debug, thiserror::Error)]
#[error("the headers of a field are too long")]
pub(crate) struct LongHeaders;

/// Wraps a body, which then fails as soon as it exceeds its bounds. A body that declares a larger
/// size is rejected at once. [`body_error`] translates the error for clients.
pub(crate) fn bounded(headers: &HeaderMap, body: Body, bounds: Bounds) -> Result<Body, Problem> {
    let encoded = headers.get(CONTENT_ENCODING).is_some_and(|name| name != "identity");
    if encoded {
        return Err(Problem::unsupported("Content-Encoding: must be absent or identity"));
    }
    if body.size_hint().lower() > bounds.size as u64 {
        return Err(Problem::too_large());
    }
    Ok(Body::new(TimeoutBody::new(bounds.pause, Limited::new(body, bounds.size))))
}

/// Translates an error of a bounded body.
pub(crate) fn body_error(error: &(dyn Error + 'static)) -> Problem {
    if caused_by::<LengthLimitError>(error) {
        return Problem::too_large();
    }
    if caused_by::<TimeoutError>(error) {
        return Problem::too_slow();
    }
    if caused_by::<SeveralFiles>(error) {
        return Problem::malformed("the form has several files: send one");
    }
    if caused_by::<LongHeaders>(error) {
        return Problem::malformed("the form has a field with headers of more than 64 KiB");
    }
    Problem::malformed("the body is incomplete")
}

/// Returns the media type of a body, without parameters and in lower case.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    value.split(';').next().map(|name| name.trim().to_ascii_lowercase())
}
