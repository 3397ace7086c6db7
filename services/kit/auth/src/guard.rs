//! Guards gRPC services: checks the token and permissions of each call, and limits the calls that
//! one customer occupies the service with. Methods that are not in the contracts are rejected.

mod response;

use assay_fair::Shares;
use assay_proto::{Fault, Needs, issues, streams, waits};
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::HeaderMap,
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
};
use tonic::{Status, service::Routes};

use self::response::ResponseBody;
use crate::{Caller, UnconfirmedCaller, Verifier, actor, caller::address_in};

#[derive(Clone)]
struct Guard {
    verifier: Verifier,
    shares: Shares,
}

/// Wraps gRPC services in the guard. Methods get their caller from [`Caller::of`].
///
/// Before a method that creates credentials or grants ([`assay_proto::issues`]), the guard reads the latest
/// revocations from identity. Such a method of identity itself gets its caller from
/// [`UnconfirmedCaller::of`] only, and compares the token in its transaction.
///
/// Only methods that stream events ([`assay_proto::streams`]) accept stream tokens.
///
/// A call holds one of `shares` until its response begins, and then while a message of the response
/// is produced, but not while a slow client reads. Methods that wait ([`assay_proto::waits`]) hold
/// none.
pub fn guard(services: Routes, verifier: Verifier, shares: &Shares) -> Router {
    let guard = Guard { verifier, shares: shares.clone() };
    services.into_axum_router().layer(from_fn_with_state(guard, admit))
}

async fn admit(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let Some(needs) = Needs::of(path) else {
        return reject(Status::unimplemented("no such method"));
    };
    let (waits, issues) = (waits(path), issues(path));
    let is_confirmed = issues && !guard.verifier.is_of_issuer();
    let accepts = match (is_confirmed, streams(path)) {
        (true, _) => Accepts::Latest,
        (_, true) => Accepts::ForStreams,
        _ => Accepts::Known,
    };
    let caller = match caller(&guard.verifier, request.headers(), needs, accepts).await {
        Ok(Some(caller)) => caller,
        Ok(None) => return next.run(request).await,
        Err(fault) => return reject(fault.into()),
    };
    let (customer, actor) = (caller.customer, caller.actor());
    if issues && !is_confirmed {
        request.extensions_mut().insert(UnconfirmedCaller::new(caller));
    } else {
        request.extensions_mut().insert(caller);
    }
    if waits {
        return actor::acting(actor, next.run(request)).await;
    }
    match guard.shares.acquire(customer).await {
        Ok(_share) => {
            let response = actor::acting(actor, next.run(request)).await;
            response.map(|body| Body::new(ResponseBody::new(body, guard.shares, customer)))
        }
        Err(fault) => reject(fault.into()),
    }
}

/// The tokens that a method accepts.
enum Accepts {
    /// Those that are not revoked as far as is known.
    Known,
    /// Those that are not revoked according to identity.
    Latest,
    /// Those of `Known`, and stream tokens.
    ForStreams,
}

async fn caller(
    verifier: &Verifier,
    headers: &HeaderMap,
    needs: Needs,
    accepts: Accepts,
) -> Result<Option<Caller>, Fault> {
    if matches!(needs, Needs::Nothing) {
        return Ok(None);
    }
    let authorization = headers.get("authorization").and_then(|value| value.to_str().ok());
    let token = authorization.and_then(|value| value.strip_prefix("Bearer "));
    let token = token.ok_or(Fault::Unauthenticated)?;
    let caller = match accepts {
        Accepts::Known => verifier.verify(token).await?,
        Accepts::Latest => verifier.verify_latest(token).await?,
        Accepts::ForStreams => verifier.verify_for_stream(token).await?,
    };
    needs.check(caller.permissions)?;
    Ok(Some(caller.at(address_in(headers))))
}

fn reject(status: Status) -> Response {
    status.into_http::<Body>().into_response()
}
