//! Support for tests: databases, NATS servers and clusters, proxies that fail, certificates, users
//! with tokens, and an HTTP client.

mod api;
mod authority;
mod broker;
mod cluster;
mod database;
mod eventually;
mod failures;
mod lock;
mod plans;
mod process;
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
    failures::{Recorded, expect_failures, recorded},
    lock::waits_for_lock,
    plans::{assert_planned_once, rows_read},
    process::{Signal, ended, signal},
    standby::Replicated,
    user::{TestKeys, TestUser},
    wire::{Wire, black_hole},
};
