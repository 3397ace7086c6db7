//! The execution service over gRPC, on a real database and with a real catalog.

mod archive;
mod debug;
mod executions;
mod exports;
mod instances;
mod results;
mod reviews;
mod scale;
mod statistics;
mod uploads;
mod world;
