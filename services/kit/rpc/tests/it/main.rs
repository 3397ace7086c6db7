//! Tests of calls between small programs.

mod interrupted;
mod local;
mod outage;
mod replicas;
mod route;
mod tls;
mod world;
