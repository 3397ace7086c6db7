//! Customers, their users and groups, and how these prove who they are.

mod api_tokens;
mod audit;
mod customers;
mod groups;
mod load;
mod login;
mod password;
mod revocation;
mod settings;
mod smtp;
mod tokens;
mod users;
