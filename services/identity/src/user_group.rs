//! User groups: users with the same permissions.

pub(crate) mod rules;
pub(crate) mod store;
