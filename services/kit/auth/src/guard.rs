//! Lets a call through only if its caller may make it. What no contract mentions is refused.

use assay_proto::{Fault, Needs, Permission, name_of};
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::HeaderMap,
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
};
use tonic::{Status, service::Routes};

use crate::{Caller, Verifier, caller::address_in};

/// Puts the guard in front of gRPC services. Methods find their caller by [`Caller::of`].
pub fn guard(services: Routes, verifier: Verifier) -> Router {
    services.into_axum_router().layer(from_fn_with_state(verifier, admit))
}

async fn admit(State(verifier): State<Verifier>, mut request: Request, next: Next) -> Response {
    let Some(needs) = Needs::of(request.uri().path()) else {
        return refuse(Status::unimplemented("no such method"));
    };
    match caller(&verifier, request.headers(), needs).await {
        Ok(Some(caller)) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Ok(None) => next.run(request).await,
        Err(fault) => refuse(fault.into()),
    }
}

async fn caller(
    verifier: &Verifier,
    headers: &HeaderMap,
    needs: Needs,
) -> Result<Option<Caller>, Fault> {
    let permissions: &[Permission] = match needs {
        Needs::Nothing => return Ok(None),
        Needs::Token => &[],
        Needs::AnyOf(permissions) => permissions,
    };
    let authorization = headers.get("authorization").and_then(|value| value.to_str().ok());
    let token = authorization.and_then(|value| value.strip_prefix("Bearer "));
    let caller = verifier.verify(token.ok_or(Fault::Unauthenticated)?).await?;
    let caller = caller.at(address_in(headers));
    if permissions.is_empty() || caller.permissions.contains_any(permissions) {
        return Ok(Some(caller));
    }
    let names: Vec<String> = permissions.iter().map(name_of).collect();
    Err(Fault::Forbidden(format!("this needs the permission {}", names.join(" or "))))
}

fn refuse(status: Status) -> Response {
    status.into_http::<Body>().into_response()
}
