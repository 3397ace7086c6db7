//! What holds when NATS or PostgreSQL do not, and when what NATS carries comes twice, in another
//! order, or is nothing that can be applied.

mod away;
mod database;
mod failover;
mod history;
mod kill;
mod line;
mod load;
mod order;
mod poison;
mod watcher;
