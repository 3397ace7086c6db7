//! The notification service over gRPC, on a real database and a real NATS.

mod notification;
mod program;
mod publication;
mod reactions;
mod retention;
mod watch;
mod world;
