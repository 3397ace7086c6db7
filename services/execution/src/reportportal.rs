//! ReportPortal: its agents report executions as launches. Their requests are staged as they are, and
//! become results when the launch is over.

mod adoption;
mod attributes;
mod body;
mod callers;
mod changes;
mod closing;
mod finishing;
mod late;
mod launches;
mod logs;
mod merging;
mod rounds;
mod service;
mod staging;
mod starting;
pub(crate) mod store;

pub use self::launches::Launches;
pub(crate) use self::store::LAUNCH;
use self::{launches::Inner, store::OfProject};
