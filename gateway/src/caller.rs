//! Who sent a request, known from the token in its headers.

use std::time::Duration;

use assay_auth::Caller;
use assay_proto::Fault;
use axum::extract::FromRequestParts;
use http::{HeaderMap, header::AUTHORIZATION, request::Parts};
use tokio::time::sleep;
use tracing::{Span, field::display};

use crate::{address::ClientAddress, limit::Account, problem::Problem, services::Services};

impl FromRequestParts<Services> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, services: &Services) -> Result<Self, Problem> {
        let token = token(&parts.headers).ok_or(Fault::Unauthenticated)?;
        let caller = services.verifier().verify(token).await?.at(ClientAddress::of(parts));
        if let Some(account) = parts.extensions.get::<Account>() {
            account.charge_customer(caller.customer)?;
        }
        Span::current()
            .record("assay.customer", display(caller.customer))
            .record("assay.user", display(caller.user));
        Ok(caller)
    }
}

/// A caller whose token is looked at again and again, for an answer that lasts.
pub(crate) struct Lasting {
    pub(crate) caller: Caller,
    token: String,
    services: Services,
}

/// How often a token is looked at.
const LOOK: Duration = Duration::from_secs(1);

impl FromRequestParts<Services> for Lasting {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, services: &Services) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, services).await?;
        let token = token(&parts.headers).ok_or(Fault::Unauthenticated)?.to_owned();
        Ok(Self { caller, token, services: services.clone() })
    }
}

impl Lasting {
    /// Resolves when the token has expired or was revoked, when it no longer has the permissions
    /// that it had, or when the program stops.
    pub(crate) async fn over(self) {
        let over = async {
            loop {
                sleep(LOOK).await;
                match self.services.verifier().verify(&self.token).await {
                    Ok(caller) if caller.permissions != self.caller.permissions => return,
                    Err(Fault::Unauthenticated) => return,
                    // While identity is away, what is known is valid.
                    Ok(_) | Err(_) => {}
                }
            }
        };
        self.services.stopping().run_until_cancelled(over).await;
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
