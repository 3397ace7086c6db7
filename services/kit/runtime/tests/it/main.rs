//! The kit's own promises, with programs of the tests' own.

mod database;
mod outage;
mod replicas;
mod route;
mod silent;
mod stopping;
mod tls;
mod world;
