//! What tests need: a database of their own, a broker that comes and goes, a cluster of them, a wire
//! that breaks, certificates, users with tokens, and a client that reads well.

mod api;
mod authority;
mod broker;
mod cluster;
mod database;
mod eventually;
mod standby;
mod user;
mod wire;

pub use self::{
    api::{Answer, Api},
    authority::Authority,
    broker::Broker,
    cluster::Cluster,
    database::{TestDatabase, drop_unused, test_dir},
    eventually::eventually,
    standby::Replicated,
    user::{TestKeys, TestUser},
    wire::{Wire, black_hole},
};
