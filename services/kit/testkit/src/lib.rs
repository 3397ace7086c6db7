//! What tests need: a database of their own, a broker that comes and goes, users with tokens, and a
//! client that reads well.

mod api;
mod broker;
mod database;
mod eventually;
mod user;

pub use self::{
    api::{Answer, Api},
    broker::Broker,
    database::{TestDatabase, test_dir},
    eventually::eventually,
    user::{TestKeys, TestUser},
};
