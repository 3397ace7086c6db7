//! Faults: outages of NATS and PostgreSQL, and events that are duplicated, reordered or invalid.

mod database;
mod failover;
mod history;
mod kill;
mod load;
mod nats_outage;
mod order;
mod pipeline;
mod poison;
mod watcher;
