//! Accounts: credentials for logging in. An email address has one account, which may belong to
//! several customers.

pub(crate) mod rules;
pub(crate) mod store;
