//! The execution service over gRPC, on a real database and with a real catalog.

mod chaos;
mod executions;
mod instances;
mod leases;
mod queue;
mod results;
mod scale;
mod uploads;
mod world;
