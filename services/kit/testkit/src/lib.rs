//! What tests need: a database of their own, users with tokens, and a client that reads well.

mod api;
mod database;
mod eventually;
mod user;

pub use self::{
    api::{Answer, Api},
    database::{TestDatabase, test_dir},
    eventually::eventually,
    user::{TestKeys, TestUser},
};
