//! Live logs: the output of tests while engines run them.
//!
//! A log belongs to a lease, so an engine whose lease was lost cannot mix its output with that of the
//! next one. Readers poll when they are woken by a signal. The end of a log costs the requests of
//! engines nothing: a task notices ended leases, and makes their logs artifacts.

mod rules;
mod seal;
mod service;
mod store;

pub use self::seal::seal_logs;
pub(crate) use self::{seal::spawn, service::LiveLogService};
