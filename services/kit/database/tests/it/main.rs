//! Tests of the database of a service, with a real PostgreSQL.

mod database;
mod migration;
mod reachability;
mod rendered;
