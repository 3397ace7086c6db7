//! Tests with a real PostgreSQL and a real NATS server, from the outbox to the inbox.

mod cluster;
mod consumer;
mod dead_letters;
mod delivery;
mod losses;
mod parking;
mod relay;
mod replay;
mod subscribers;
mod world;
