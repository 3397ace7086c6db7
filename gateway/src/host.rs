//! The host that a request names.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use http::{header::HOST, request::Parts, uri::Authority};

/// The host without its port; empty if the client names none.
pub(crate) struct Host(pub(crate) String);

impl<S: Sync> FromRequestParts<S> for Host {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let header = || parts.headers.get(HOST)?.to_str().ok()?.parse::<Authority>().ok();
        let authority = parts.uri.authority().cloned().or_else(header);
        Ok(Self(authority.map(|authority| authority.host().to_owned()).unwrap_or_default()))
    }
}
