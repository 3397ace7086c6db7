//! The records that services know once they have received all events of them.

use std::collections::BTreeSet;

use assay_proto::{
    CustomerId, ProjectId, TestPlanId,
    events::{ExecutionChanged, ReportsChanged},
};
use assay_records::appliances::Appliances;
use sqlx::FromRow;
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
