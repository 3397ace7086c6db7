//! Tests of the execution service over gRPC, with a real database and a real catalog.

mod archive;
mod artifacts;
mod causes;
mod changes;
mod chaos;
mod debug;
mod deletion;
mod events;
mod executions;
mod exports;
mod fairness;
mod insights;
mod instances;
mod known_failures;
mod leases;
mod metrics;
mod open;
mod queue;
mod results;
mod retention;
mod reviews;
mod roles;
mod scale;
mod statistics;
mod uploads;
mod world;
