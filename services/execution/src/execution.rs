//! Executions: runs of a test set, from their start to their end.

pub(crate) mod archive;
pub(crate) mod details;
mod filter;
pub(crate) mod idempotency;
pub(crate) mod list;
mod open;
pub(crate) mod reporter;
mod service;
mod start;
pub(crate) mod summary;
pub(crate) mod verdict;

use assay_ledger::time_limits::TimeLimits;
use sqlx::PgPool;

use crate::{catalog::Catalog, console_link::ConsoleLinks, limits::IngestLimits, queue::Queue};

/// The gRPC service of executions.
#[derive(Clone)]
pub(crate) struct ExecutionService {
    pub(crate) db: PgPool,
    pub(crate) catalog: Catalog,
    pub(crate) queue: Queue,
    pub(crate) limits: IngestLimits,
    pub(crate) settings: TimeLimits,
    pub(crate) console: ConsoleLinks,
}
