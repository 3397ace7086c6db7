//! What a body of any kind may be: how large, how slow, how encoded.

use std::{error::Error, time::Duration};

use axum::body::{Body, HttpBody};
use http::{
    HeaderMap,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use http_body_util::{LengthLimitError, Limited};
use tower_http::timeout::{TimeoutBody, TimeoutError};

use crate::{cause::caused_by, problem::Problem};

/// How large a body may be, and how long it may pause.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) size: usize,
    pub(crate) pause: Duration,
}

impl Bounds {
    pub(crate) const JSON: Self = Self { size: 1 << 20, pause: Duration::from_secs(10) };
    /// Of several records, which may be sent back with more than what was sent of them first.
    pub(crate) const RECORDS: Self = Self { size: 2 << 20, ..Self::JSON };
    /// Of a record that may be sent back as it was read.
    pub(crate) const RECORD: Self = Self { size: 32 << 20, ..Self::JSON };
    pub(crate) const UPLOAD: Self = Self { size: 32 << 20, pause: Duration::from_secs(20) };
}

/// The body, which fails as soon as it leaves its bounds. One that says so itself is refused at
/// once. What [`broken`] tells of the failure is fit for clients.
pub(crate) fn bounded(headers: &HeaderMap, body: Body, bounds: Bounds) -> Result<Body, Problem> {
    let encoded = headers.get(CONTENT_ENCODING).is_some_and(|name| name != "identity");
    if encoded {
        return Err(Problem::unsupported("a body must not be encoded"));
    }
    if body.size_hint().lower() > bounds.size as u64 {
        return Err(Problem::too_large());
    }
    Ok(Body::new(TimeoutBody::new(bounds.pause, Limited::new(body, bounds.size))))
}

/// Why a bounded body could not be read to its end.
pub(crate) fn broken(error: &(dyn Error + 'static)) -> Problem {
    if caused_by::<LengthLimitError>(error) {
        return Problem::too_large();
    }
    if caused_by::<TimeoutError>(error) {
        return Problem::too_slow();
    }
    Problem::malformed("the body broke off")
}

/// What a body says it is, without parameters and in lower case.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    value.split(';').next().map(|name| name.trim().to_ascii_lowercase())
}
