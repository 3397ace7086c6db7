//! Launches, with everything that their methods and tasks share.

use std::sync::Arc;

use assay_fair::Shares;
use assay_proto::{CustomerId, ExecutionId, Fault, LaunchId, execution::Launch};
use sqlx::PgPool;

use super::{
    body::number,
    callers::Callers,
    staging::{self, Staging},
};
use crate::{artifact::Artifacts, execution::ExecutionService, result::ResultService};

/// The launches of all customers.
#[derive(Clone)]
pub struct Launches(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) db: PgPool,
    pub(super) executions: ExecutionService,
    pub(super) results: ResultService,
    pub(super) artifacts: Artifacts,
    pub(super) staging: Staging,
    pub(super) callers: Callers,
}

impl Launches {
    pub(crate) fn new(
        executions: ExecutionService,
        results: ResultService,
        shares: &Shares,
    ) -> Self {
        let (db, artifacts) = (executions.db.clone(), results.artifacts.clone());
        let (staging, callers) = (staging::gather(&db, shares), Callers::default());
        Self(Arc::new(Inner { db, executions, results, artifacts, staging, callers }))
    }

    /// Reads or writes with a share of the database, which calls of launches do not hold all the time.
    pub(super) async fn read_with<T>(
        &self,
        customer: CustomerId,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        self.0.executions.limits.read(customer, work).await
    }

    /// Returns the form of a launch in the interface.
    pub(super) fn launch(&self, id: LaunchId, execution: ExecutionId) -> Launch {
        let link = self.0.executions.console.execution(&execution.to_string());
        Launch { id: id.to_string(), number: number(id), link }
    }
}
