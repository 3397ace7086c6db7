//! Memberships: an account as one customer sees it.

pub(crate) mod rules;
pub(crate) mod store;

use assay_proto::{CustomerId, Fault, Permission, Permissions, UserId};

/// What an account may do for a customer.
#[derive(Clone, Debug, sqlx::FromRow)]
pub(crate) struct Membership {
    pub(crate) customer_id: CustomerId,
    /// The user that the account is for the customer.
    pub(crate) id: UserId,
    /// The customer's.
    pub(crate) subdomain: String,
    pub(crate) display_name: String,
    /// The user group's.
    usage_permission: String,
}

impl Membership {
    pub(crate) fn permissions(&self) -> Result<Permissions, Fault> {
        Permissions::parse("UsagePermission", &self.usage_permission).map_err(Fault::internal)
    }

    pub(crate) fn may_log_in(&self) -> bool {
        self.may(Permission::Login)
    }

    /// Whether its owner could see for themselves what their customer's records say.
    pub(crate) fn may_read(&self) -> bool {
        self.may_log_in() && self.may(Permission::Read)
    }

    /// Whether its owner may work for any customer.
    pub(crate) fn may_visit(&self) -> bool {
        self.may_log_in() && self.may(Permission::CustomerManagement)
    }

    fn may(&self, permission: Permission) -> bool {
        self.permissions().is_ok_and(|permissions| permissions.contains(permission))
    }
}
