//! Memberships: the users of customers, with the accounts they log in with.

pub(crate) mod list;
pub(crate) mod rules;
pub(crate) mod store;

use assay_proto::{CustomerId, Fault, Permission, Permissions, UserId};

/// A membership of an account in a customer.
#[derive(Clone, Debug, sqlx::FromRow)]
pub(crate) struct Membership {
    pub(crate) customer_id: CustomerId,
    /// The id of the user.
    pub(crate) id: UserId,
    /// The subdomain of the customer.
    pub(crate) subdomain: String,
    pub(crate) display_name: String,
    /// The permissions of the user group.
    usage_permission: String,
}

impl Membership {
    pub(crate) fn permissions(&self) -> Result<Permissions, Fault> {
        Permissions::parse("UsagePermission", &self.usage_permission).map_err(Fault::internal)
    }

    pub(crate) fn may_log_in(&self) -> bool {
        self.may(Permission::Login)
    }

    /// Returns whether the user may read the records of the customer.
    pub(crate) fn may_read(&self) -> bool {
        self.may_log_in() && self.may(Permission::Read)
    }

    /// Returns whether the user may get tokens for other customers.
    pub(crate) fn may_visit(&self) -> bool {
        self.may_log_in() && self.may(Permission::CustomerManagement)
    }

    /// Returns whether the user may manage the users of a customer, as a member or as a visitor.
    pub(crate) fn may_manage_users(&self, customer: CustomerId) -> bool {
        let may_enter =
            if self.customer_id == customer { self.may_log_in() } else { self.may_visit() };
        may_enter && self.may(Permission::UserManagement)
    }

    fn may(&self, permission: Permission) -> bool {
        self.permissions().is_ok_and(|permissions| permissions.contains(permission))
    }
}
