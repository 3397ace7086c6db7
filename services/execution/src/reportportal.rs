//! ReportPortal: its agents report executions as launches. Their requests are staged as they are, and
//! become results when the launch is over.
//!
//! An agent reports the start and the end of each item and drops what is refused, and only the end of a
//! launch shows which items are tests. So no request is interpreted when it arrives (`staging`). A task
//! closes launches that are over (`rounds`, `closing`): it reads all requests and stores the results and the
//! end of the execution in one transaction. Whatever arrives later becomes an artifact (`late`). Tokens are
//! not stored, so test cases are adopted while callers are there (`adoption`, `callers`).
//! `docs/design/agents.md` has the states of a launch and its crash points.

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
