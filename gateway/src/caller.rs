//! Who sent a request, known from the token in its headers.

use assay_auth::Caller;
use assay_proto::Fault;
use axum::extract::FromRequestParts;
use http::{HeaderMap, header::AUTHORIZATION, request::Parts};
use tracing::{Span, field::display};

use crate::{address::ClientAddress, problem::Problem, services::Services};

impl FromRequestParts<Services> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, services: &Services) -> Result<Self, Problem> {
        let token = token(&parts.headers).ok_or(Fault::Unauthenticated)?;
        let caller = services.verifier().verify(token).await?.at(ClientAddress::of(parts));
        Span::current()
            .record("assay.customer", display(caller.customer))
            .record("assay.user", display(caller.user));
        Ok(caller)
    }
}

/// `Authentication` is the header of this interface; `Authorization` is what HTTP clients know.
fn token(headers: &HeaderMap) -> Option<&str> {
    let own = headers.get("authentication");
    let value = own.or_else(|| headers.get(AUTHORIZATION))?.to_str().ok()?.trim();
    let bare = own.map(|_| value);
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Some(token.trim()),
        Some(_) => None,
        None => bare,
    }
}
