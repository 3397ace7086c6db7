//! What tests need: a database of their own, a broker that comes and goes, a cluster of them, a wire
//! that breaks, users with tokens, and a client that reads well.

mod api;
mod broker;
mod cluster;
mod database;
mod eventually;
mod standby;
mod user;
mod wire;

pub use self::{
    api::{Answer, Api},
    broker::Broker,
    cluster::Cluster,
    database::{TestDatabase, drop_unused, test_dir},
    eventually::eventually,
    standby::Replicated,
    user::{TestKeys, TestUser},
    wire::{Wire, black_hole},
};
