//! What tests need: a database of their own, a broker that comes and goes, a wire that breaks, users
//! with tokens, and a client that reads well.

mod api;
mod broker;
mod database;
mod eventually;
mod user;
mod wire;

pub use self::{
    api::{Answer, Api},
    broker::Broker,
    database::{TestDatabase, drop_unused, test_dir},
    eventually::eventually,
    user::{TestKeys, TestUser},
    wire::{Wire, black_hole},
};
