//! The caller of a request, authenticated by the token in its headers.

use std::time::Duration;

use assay_auth::Caller;
use assay_proto::Fault;
use axum::extract::FromRequestParts;
use http::request::Parts;
use tokio::time::sleep;
use tracing::{Span, field::display};

use crate::{
    address::ClientAddress, limit::RequestLimits, problem::Problem, services::Services,
    token::token,
};

impl FromRequestParts<Services> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, services: &Services) -> Result<Self, Problem> {
        let token = token(&parts.headers).ok_or(Fault::Unauthenticated)?;
        let verified = services.verifier().verify(token).await;
        if let Some(limits) = parts.extensions.get::<RequestLimits>() {
            match &verified {
                Ok(caller) => limits.charge_customer(caller.customer)?,
                Err(Fault::Unauthenticated) => limits.forget_token(),
                Err(_) => {}
            }
        }
        let caller = verified?.at(ClientAddress::of(parts));
        services.access().check(parts, caller.permissions)?;
        Span::current()
            .record("assay.customer", display(caller.customer))
            .record("assay.user", display(caller.user));
        Ok(caller)
    }
}

/// A caller whose token is verified repeatedly while a long-lived response is sent.
pub(crate) struct WatchedCaller {
    pub(crate) caller: Caller,
    token: String,
    services: Services,
}

/// Interval between two verifications of a token.
const VERIFY_INTERVAL: Duration = Duration::from_secs(1);

impl FromRequestParts<Services> for WatchedCaller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, services: &Services) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, services).await?;
        let token = token(&parts.headers).ok_or(Fault::Unauthenticated)?.to_owned();
        Ok(Self { caller, token, services: services.clone() })
    }
}

impl WatchedCaller {
    /// Waits until the token has expired or is revoked, its permissions change, or the program
    /// stops.
    pub(crate) async fn access_ended(self) {
        let ended = async {
            loop {
                sleep(VERIFY_INTERVAL).await;
                match self.services.verifier().verify(&self.token).await {
                    Ok(caller) if caller.permissions != self.caller.permissions => return,
                    Err(Fault::Unauthenticated) => return,
                    // While identity is unavailable, the last verification counts.
                    Ok(_) | Err(_) => {}
                }
            }
        };
        self.services.stopping().run_until_cancelled(ended).await;
    }
}
