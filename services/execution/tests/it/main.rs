//! The execution service over gRPC, on a real database and with a real catalog.

mod archive;
mod artifacts;
mod chaos;
mod debug;
mod deletion;
mod executions;
mod exports;
mod fairness;
mod instances;
mod leases;
mod queue;
mod results;
mod retention;
mod reviews;
mod roles;
mod scale;
mod statistics;
mod told;
mod uploads;
mod world;
