//! Tests of the catalog over gRPC with a real database.

mod adoption;
mod archive;
mod automation;
mod automation_steps;
mod deletion;
mod encryption_keys;
mod environment;
mod favorite;
mod import;
mod isolation;
mod list;
mod lookup;
mod model;
mod opening;
mod project;
mod purge;
mod reactions;
mod secrets;
mod shown;
mod snapshot;
mod subject;
mod test_case;
mod test_plan;
mod test_set;
mod user;
mod world;
