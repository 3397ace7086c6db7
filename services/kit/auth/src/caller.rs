//! Who is calling.

use std::{net::IpAddr, sync::Arc, time::Duration};

use assay_proto::{ApiTokenId, CustomerId, Fault, Permission, Permissions, UserId};
use assay_runtime::grpc::CLIENT_ADDRESS;
use http::HeaderMap;
use tonic::{
    Request,
    metadata::{Ascii, MetadataValue},
};

use crate::token::Session;

/// How long a call to another program may take until its answer begins.
const CALL_DEADLINE: Duration = Duration::from_secs(15);

/// A user, working for one customer; known from a verified token.
#[derive(Clone, Debug)]
pub struct Caller {
    pub customer: CustomerId,
    pub user: UserId,
    /// The display name of the user.
    pub name: Arc<str>,
    pub permissions: Permissions,
    /// The API token that the user proved themselves with.
    pub api_token: Option<ApiTokenId>,
    /// The session that the token belongs to; none for an API token.
    pub session: Option<Session>,
    /// Where the client is, if that is known. It is passed on to other services.
    pub address: Option<IpAddr>,
    /// The token as a header, to be forwarded to other services.
    pub(crate) authorization: MetadataValue<Ascii>,
}

impl Caller {
    /// The caller of a gRPC method behind [`crate::guard`].
    pub fn of<T>(request: &Request<T>) -> Result<Self, Fault> {
        request.extensions().get().cloned().ok_or(Fault::Unauthenticated)
    }

    /// The same caller at this address.
    #[must_use]
    pub fn at(self, address: Option<IpAddr>) -> Self {
        Self { address, ..self }
    }

    pub fn may(&self, permission: Permission) -> bool {
        self.permissions.contains(permission)
    }

    /// Calls another service on behalf of this caller.
    pub fn call<T>(&self, message: T) -> Request<T> {
        self.call_within(CALL_DEADLINE, message)
    }

    /// As [`Caller::call`], for calls that may take longer or shorter.
    pub fn call_within<T>(&self, deadline: Duration, message: T) -> Request<T> {
        let mut request = anonymous_from(self.address, message);
        request.set_timeout(deadline);
        request.metadata_mut().insert("authorization", self.authorization.clone());
        request.extensions_mut().insert(self.customer);
        request
    }
}

/// The customer that a call is made for, if it is made by [`Caller::call`].
pub fn customer_of(extensions: &http::Extensions) -> Option<CustomerId> {
    extensions.get().copied()
}

/// Calls a method that needs no token.
pub fn anonymous<T>(message: T) -> Request<T> {
    anonymous_within(CALL_DEADLINE, message)
}

/// As [`anonymous`], on behalf of a client at this address.
pub fn anonymous_from<T>(address: Option<IpAddr>, message: T) -> Request<T> {
    let mut request = anonymous(message);
    if let Some(Ok(address)) = address.map(|address| address.to_string().parse()) {
        request.metadata_mut().insert(CLIENT_ADDRESS, address);
    }
    request
}

/// As [`anonymous`], for calls that may take longer or shorter.
pub(crate) fn anonymous_within<T>(deadline: Duration, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(deadline);
    request
}

/// Where the client is on whose behalf a method is called, if that is known.
pub fn client_address<T>(request: &Request<T>) -> Option<IpAddr> {
    request.metadata().get(CLIENT_ADDRESS)?.to_str().ok()?.parse().ok()
}

/// As [`client_address`], from the headers of the call.
pub(crate) fn address_in(headers: &HeaderMap) -> Option<IpAddr> {
    headers.get(CLIENT_ADDRESS)?.to_str().ok()?.parse().ok()
}
