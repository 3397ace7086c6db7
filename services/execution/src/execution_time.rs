//! Execution times: the hours of the executions that ended in a month, by project, test set and target
//! group.
//!
//! The time of an execution is derived from its reports once it has ended, by one statement that the worker,
//! `verify` and `rebuild` share. Its row stays when the results expire or the project is deleted.

mod service;
pub(crate) mod store;
mod worker;

pub use self::worker::count_execution_times;
pub(crate) use self::{service::ExecutionTimeService, store::EXECUTION_TIME, worker::spawn};
