//! Tokens as programs verify them, with an identity service of the tests' own.

mod api_token;
mod caller;
mod forged;
mod guard;
mod keys;
mod revoked;
mod world;
