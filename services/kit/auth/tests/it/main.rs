//! Tests of verifying tokens, against a fake identity service.

mod api_token;
mod caller;
mod forged;
mod guard;
mod keys;
mod revoked;
mod world;
