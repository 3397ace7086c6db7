//! TestRail: its clients report executions as runs, and know records by whole numbers.

mod attachment;
mod attempts;
mod body;
mod number;
mod repetition;
mod results;
mod service;
pub(crate) mod store;

use sqlx::PgPool;

use crate::result::ResultService;

/// The gRPC service of runs.
#[derive(Clone)]
pub(crate) struct RunService {
    pub(crate) db: PgPool,
    pub(crate) results: ResultService,
}
