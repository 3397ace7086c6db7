//! From the outbox over JetStream to the inbox, on a real PostgreSQL and a real NATS.

mod cluster;
mod consumer;
mod dead_letters;
mod delivery;
mod parking;
mod relay;
mod replay;
mod subscribers;
mod world;
