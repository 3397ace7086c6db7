//! Accounts: who can log in. One email has one account, whatever the number of its customers.

pub(crate) mod rules;
pub(crate) mod store;
