//! Tests of the runtime with small programs.

mod database;
mod interrupted;
mod local;
mod migration;
mod outage;
mod reachability;
mod rendered;
mod replicas;
mod route;
mod silent;
mod stopping;
mod telemetry;
mod tls;
mod world;
