//! Tests of the notification service over gRPC, with a real database and a real NATS.

mod attempt;
mod deletion;
mod delivery;
mod failure;
mod filters;
mod forgery;
mod format;
mod frozen;
mod health;
mod notification;
mod program;
mod publication;
mod reactions;
mod receiver;
mod retention;
mod schedule;
mod sufficient;
mod trends;
mod watch;
mod webhook;
mod world;
