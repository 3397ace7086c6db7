//! Tests of the life of a program.

mod silent;
mod stopping;
mod telemetry;
mod unread;
