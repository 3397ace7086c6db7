//! The records that services know once they have received all events of them.

use std::collections::BTreeSet;

use assay_proto::{
    CustomerId, Fault, ProjectId, TestPlanId,
    events::{ExecutionChanged, ReportsChanged},
};
use assay_records::appliances::Appliances;
use sqlx::{FromRow, PgExecutor};
use uuid::Uuid;

/// Reports of test cases.
#[derive(Debug, Default)]
pub struct KnownReports {
    /// Those that have ended, by execution.
    pub ended: Vec<ReportsChanged>,
    /// Those that have not, or not again.
    pub pending: Vec<Uuid>,
    /// The plans of both, each once.
    pub plans: BTreeSet<TestPlanId>,
}

/// The executions of a project that its records show.
#[derive(Debug, Default)]
pub struct KnownExecutions {
    /// The latest one of each test set and of each environment, the latest completed one of each subject, and the
    /// latest ended one.
    pub executions: Vec<ExecutionChanged>,
    /// The reports of the latest execution of which any has ended.
    pub reports: KnownReports,
}

/// A customer, as the identity service has it.
#[derive(Clone, Debug)]
pub struct KnownCustomer {
    pub is_archived: bool,
    pub is_deleted: bool,
    pub appliances: Appliances,
}

impl KnownCustomer {
    pub fn id(&self) -> CustomerId {
        self.appliances.customer_id
    }

    /// Returns those of some customers that neither the identity service nor another one has deleted.
    pub fn live<'k>(
        known: &'k [Self],
        deleted: &'k [CustomerId],
    ) -> impl Iterator<Item = &'k Self> {
        known.iter().filter(move |one| !one.is_deleted && !deleted.contains(&one.id()))
    }
}

/// Returns those of some customers that a service has deleted by its table `deleted_customer`, although the identity
/// service has them.
pub async fn deleted_customers(
    db: impl PgExecutor<'_>,
    known: &[KnownCustomer],
) -> Result<Vec<CustomerId>, Fault> {
    let live: Vec<_> = KnownCustomer::live(known, &[]).map(KnownCustomer::id).collect();
    let deleted = "select customer_id from deleted_customer
                   where customer_id = any($1)
                   order by customer_id";
    Ok(sqlx::query_scalar(deleted).bind(live).fetch_all(db).await?)
}

/// A test case or a test set that the catalog has deleted, of a project that it has not.
#[derive(Clone, Debug, FromRow)]
pub struct KnownDeletion {
    pub customer_id: CustomerId,
    pub project_id: ProjectId,
    /// The noun, as operators read it.
    pub noun: String,
    pub id: Uuid,
}

/// A user or a user group, by the notifications of its creation and its deletion.
#[derive(Clone, Debug, FromRow)]
pub struct KnownMember {
    pub customer_id: CustomerId,
    /// The noun, as operators read it.
    pub noun: String,
    pub id: Uuid,
    pub is_deleted: bool,
}

/// How long the results of a project are kept.
#[derive(Clone, Copy, Debug)]
pub struct KnownRetention {
    pub customer: CustomerId,
    pub project: ProjectId,
    /// None if they are kept without limit.
    pub days: Option<i32>,
    /// The revision of the project.
    pub revision: i64,
}
