//! Tests of the runtime with small programs.

mod database;
mod local;
mod outage;
mod replicas;
mod route;
mod silent;
mod stopping;
mod tls;
mod world;
