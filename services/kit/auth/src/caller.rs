//! Who is calling.

use std::{sync::Arc, time::Duration};

use assay_proto::{CustomerId, Fault, Permission, Permissions, UserId};
use assay_runtime::trace;
use tonic::{
    Request,
    metadata::{Ascii, MetadataMap, MetadataValue},
};

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
    /// The token as a header, to be forwarded to other services.
    pub(crate) authorization: MetadataValue<Ascii>,
}

impl Caller {
    /// The caller of a gRPC method behind [`crate::guard`].
    pub fn of<T>(request: &Request<T>) -> Result<Self, Fault> {
        request.extensions().get().cloned().ok_or(Fault::Unauthenticated)
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
        let mut request = anonymous(message);
        request.set_timeout(deadline);
        request.metadata_mut().insert("authorization", self.authorization.clone());
        request
    }
}

/// Calls a method that needs no token.
pub fn anonymous<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    let mut headers = std::mem::take(request.metadata_mut()).into_headers();
    trace::inject(&mut headers);
    *request.metadata_mut() = MetadataMap::from_headers(headers);
    request.set_timeout(CALL_DEADLINE);
    request
}
