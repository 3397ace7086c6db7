//! The caller of a method, and calls of other services on the caller's behalf.

use std::{
    hash::{Hash, Hasher},
    net::IpAddr,
    ops::Deref,
    sync::Arc,
    time::Duration,
};

use assay_fair::OfCustomer;
use assay_proto::{
    Actor, ActorKind, ApiTokenId, CustomerId, Fault, Permission, Permissions, UserId,
};
use assay_rpc::grpc::CLIENT_ADDRESS;
use http::HeaderMap;
use tonic::{
    Request,
    metadata::{Ascii, MetadataValue},
};

use crate::token::Session;

/// Default timeout of a call, until its response begins.
const CALL_DEADLINE: Duration = Duration::from_secs(15);

/// A user of a customer, from a verified token.
#[derive(Clone, Debug)]
pub struct Caller {
    pub customer: CustomerId,
    pub user: UserId,
    /// Display name of the user.
    pub name: Arc<str>,
    pub permissions: Permissions,
    /// API token that the token was exchanged for.
    pub api_token: Option<ApiTokenId>,
    /// Session of the token; none for an API token.
    pub session: Option<Session>,
    /// IP address of the client, if known. It is forwarded to other services.
    pub address: Option<IpAddr>,
    /// Header with the token, which is forwarded to other services.
    pub(crate) authorization: MetadataValue<Ascii>,
}

/// Callers with the same token at the same address are equal.
impl PartialEq for Caller {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address && self.authorization == other.authorization
    }
}

impl Eq for Caller {}

impl Hash for Caller {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.authorization.hash(state);
    }
}

impl OfCustomer for Caller {
    fn customer(&self) -> CustomerId {
        self.customer
    }
}

impl Caller {
    /// Returns the caller of a gRPC method behind [`crate::guard`]. Fails for a method that creates
    /// credentials or grants, which needs [`UnconfirmedCaller::of`].
    pub fn of<T>(request: &Request<T>) -> Result<Self, Fault> {
        if request.extensions().get::<UnconfirmedCaller>().is_some() {
            return Err(Fault::internal("the method has assay.issues: confirm its caller"));
        }
        request.extensions().get().cloned().ok_or(Fault::Unauthenticated)
    }

    /// Returns the caller as the actor of events.
    pub fn actor(&self) -> Actor {
        let kind = if self.api_token.is_some() { ActorKind::Token } else { ActorKind::User };
        Actor {
            kind: kind.into(),
            user_id: Some(self.user.to_string()),
            name: self.name.to_string(),
            token_id: self.api_token.map(|id| id.to_string()),
        }
    }

    /// Returns the caller with another address.
    #[must_use]
    pub fn at(self, address: Option<IpAddr>) -> Self {
        Self { address, ..self }
    }

    /// Returns whether the caller has a permission.
    pub fn may(&self, permission: Permission) -> bool {
        self.permissions.contains(permission)
    }

    /// Returns a request to another service on behalf of this caller.
    pub fn call<T>(&self, message: T) -> Request<T> {
        self.call_within(CALL_DEADLINE, message)
    }

    /// Returns a request like [`Caller::call`], with another timeout.
    pub fn call_within<T>(&self, deadline: Duration, message: T) -> Request<T> {
        let mut request = anonymous_from(self.address, message);
        request.set_timeout(deadline);
        request.metadata_mut().insert("authorization", self.authorization.clone());
        request.extensions_mut().insert(self.customer);
        request
    }
}

/// The caller of a method of identity that creates credentials or grants. The token is valid as far as the
/// guard knows, and may have been revoked a moment ago.
#[derive(Clone, Debug)]
pub struct UnconfirmedCaller(Caller);

impl Deref for UnconfirmedCaller {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.0
    }
}

impl UnconfirmedCaller {
    pub(crate) fn new(caller: Caller) -> Self {
        Self(caller)
    }

    /// Returns the caller of a gRPC method behind [`crate::guard`] that has the option
    /// `assay.issues`.
    pub fn of<T>(request: &Request<T>) -> Result<Self, Fault> {
        if request.extensions().get::<Caller>().is_some() {
            return Err(Fault::internal("the method lacks assay.issues in its contract"));
        }
        request.extensions().get().cloned().ok_or(Fault::Unauthenticated)
    }
}

/// Returns the customer of a request that was made with [`Caller::call`].
pub fn customer_of(extensions: &http::Extensions) -> Option<CustomerId> {
    extensions.get().copied()
}

/// Returns a request to a method that needs no token.
pub fn anonymous<T>(message: T) -> Request<T> {
    anonymous_within(CALL_DEADLINE, message)
}

/// Returns a request like [`anonymous`], on behalf of a client at this address.
pub fn anonymous_from<T>(address: Option<IpAddr>, message: T) -> Request<T> {
    let mut request = anonymous(message);
    if let Some(Ok(address)) = address.map(|address| address.to_string().parse()) {
        request.metadata_mut().insert(CLIENT_ADDRESS, address);
    }
    request
}

/// Returns a request like [`anonymous`], with another timeout.
pub(crate) fn anonymous_within<T>(deadline: Duration, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(deadline);
    request
}

/// Returns the IP address of the client on whose behalf a method is called, if known.
pub fn client_address<T>(request: &Request<T>) -> Option<IpAddr> {
    request.metadata().get(CLIENT_ADDRESS)?.to_str().ok()?.parse().ok()
}

/// Returns the IP address of the client from the headers of a call, if known.
pub(crate) fn address_in(headers: &HeaderMap) -> Option<IpAddr> {
    headers.get(CLIENT_ADDRESS)?.to_str().ok()?.parse().ok()
}
