//! Customers, users, groups and authentication.

mod api_tokens;
mod audit;
mod customers;
mod groups;
mod load;
mod login;
mod memberships;
mod password;
mod revocation;
mod settings;
mod tokens;
mod users;
