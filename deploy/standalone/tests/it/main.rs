//! Assay as a whole, over HTTP and NATS: five programs, real PostgreSQL, real NATS.

mod artifacts;
mod asyncapi;
mod canary;
mod catalog;
mod deletion;
mod engines;
mod faults;
mod identity;
mod junit;
mod line;
mod lists;
mod mail;
mod matrix;
mod observability;
mod operator;
mod people;
mod process;
mod reference_engine;
mod reports;
mod slow;
mod stream;
mod subscribers;
mod traces;
mod verify;
mod webhooks;
mod world;
