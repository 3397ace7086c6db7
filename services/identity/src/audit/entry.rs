//! Entries of the audit log, and their actors.

use std::{fmt::Display, net::IpAddr};

use assay_auth::Caller;
use assay_proto::{CustomerId, UserId};

/// The user who does something, for a customer and from an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Actor {
    pub(crate) customer: CustomerId,
    pub(crate) user: UserId,
    pub(crate) address: Option<IpAddr>,
}

impl From<&Caller> for Actor {
    fn from(caller: &Caller) -> Self {
        Self { customer: caller.customer, user: caller.user, address: caller.address }
    }
}

/// An action, its target and its details.
pub(crate) struct Entry {
    pub(super) action: String,
    pub(super) target: Option<(String, String)>,
    pub(super) details: Option<String>,
}

impl Entry {
    pub(crate) fn new(action: &str) -> Self {
        Self { action: action.to_owned(), target: None, details: None }
    }

    /// Sets the record that the action affects.
    pub(crate) fn target(self, kind: &str, id: impl Display) -> Self {
        Self { target: Some((kind.to_owned(), id.to_string())), ..self }
    }

    /// Sets the changes, without secrets.
    pub(crate) fn details(self, details: Option<String>) -> Self {
        Self { details, ..self }
    }
}
