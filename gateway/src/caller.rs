//! The caller of a request, authenticated by the token in its headers.

use std::time::Duration;

use assay_auth::Caller;
use assay_proto::Fault;
use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::Deserialize;
use tokio::time::sleep;
use tracing::{Span, field::display};
use utoipa::IntoParams;

use crate::{
    address::ClientAddress, limit::RequestLimits, problem::Problem, query::Query,
    services::Services, token::token,
};

impl FromRequestParts<Services> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, services: &Services) -> Result<Self, Problem> {
        let token = token(&parts.headers).ok_or(Fault::Unauthenticated)?;
        let verified = services.verifier().verify(token).await;
        admit(parts, services, verified)
    }
}

/// Returns the verified caller of a request, if the customer is within its limits and the operation is
/// permitted.
fn admit(
    parts: &Parts,
    services: &Services,
    verified: Result<Caller, Fault>,
) -> Result<Caller, Problem> {
    if let Some(limits) = parts.extensions.get::<RequestLimits>() {
        match &verified {
            Ok(caller) => limits.charge_customer(caller.customer)?,
            Err(Fault::Unauthenticated) => limits.forget_token(),
            Err(_) => {}
        }
    }
    let caller = verified?.at(ClientAddress::of(parts));
    services.declared().require_permission(parts, caller.permissions)?;
    Span::current()
        .record("assay.customer", display(caller.customer))
        .record("assay.user", display(caller.user));
    Ok(caller)
}

/// The token of a client that cannot send headers, such as `EventSource`.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StreamQuery {
    /// A stream token, instead of a token in a header. Other tokens are refused here
    #[param(example = "eyJhbGciOiJFZERTQSIsImtpZCI6IjEifQ.eyJzdWIiOiIwMTljYWRmYiJ9.c2lnbmF0dXJl")]
    token: Option<String>,
}

/// A caller whose token is verified repeatedly while a long-lived response is sent. The token is one in the
/// headers, or a stream token in the query parameter `token`.
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
        let verifier = services.verifier();
        let (token, caller) = if let Some(token) = token(&parts.headers) {
            (token.to_owned(), verifier.verify_for_stream(token).await)
        } else {
            let Query(StreamQuery { token }) = Query::from_request_parts(parts, services).await?;
            let token = token.ok_or(Fault::Unauthenticated)?;
            // URLs are logged, so that no other token belongs there.
            let caller = verifier.verify_stream_token(&token).await;
            (token, caller)
        };
        let caller = admit(parts, services, caller)?;
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
                match self.services.verifier().verify_for_stream(&self.token).await {
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
