//! The stored and the derived state of an execution.

use assay_ledger::{
    execution::{self, store::tags},
    failure::derivation,
    progress::{execution::ExecutionState, report::TestReportState},
    test_report::{self, store::RecordedReport},
};
use assay_proto::{CustomerId, ExecutionId, Fault, ProjectId};
use sqlx::PgTransaction;

use super::{
    compare::{Difference, of_execution, of_report},
    derived::derive,
    store,
};

pub(super) struct Examined {
    customer: CustomerId,
    id: ExecutionId,
    stored: ExecutionState,
    derived: ExecutionState,
    /// The stored state of each report, and the derived one.
    reports: Vec<(RecordedReport, TestReportState)>,
    tags: Vec<String>,
    failures: Vec<Difference>,
}

impl Examined {
    /// Reads and derives the state of an execution within a transaction that sees no changes by others.
    pub(super) async fn of(
        tx: &mut PgTransaction<'_>,
        customer: CustomerId,
        stored: ExecutionState,
    ) -> Result<Self, Fault> {
        let id = ExecutionId::from_record(&stored.execution.id)?;
        let recorded = test_report::store::recorded(tx, customer, id).await?;
        let (derived, reports) = derive(tx, customer, &stored, &recorded).await?;
        let tags = tags::stored(tx, customer, id).await?;
        let failures = if execution::store::has_expired(&mut **tx, customer, id).await?
            || derivation::is_pending(&mut **tx, customer, id).await?
        {
            Vec::new()
        } else {
            store::failure_differences(tx, customer, id).await?
        };
        let reports = recorded.into_iter().zip(reports).collect();
        Ok(Self { customer, id, stored, derived, reports, tags, failures })
    }

    pub(super) fn differences(self) -> Vec<Difference> {
        let reports = self.reports.iter();
        let reports = reports.flat_map(|(stored, derived)| of_report(&stored.state, derived));
        let tags = tags::of(&self.stored.execution.tags);
        let of_tags = (self.tags != tags).then(|| Difference {
            noun: "execution".to_owned(),
            id: self.id.to_string(),
            field: "execution_tag".to_owned(),
            stored: Some(self.tags.join(", ")),
            derived: Some(tags.join(", ")),
        });
        let of_execution = of_execution(&self.stored, &self.derived);
        let differences = reports.chain(of_execution).chain(of_tags);
        differences.chain(self.failures).collect()
    }

    /// Stores the derived state of a locked execution, whose failures have been repaired: whether a report
    /// is muted follows from them. Returns it, and the number of changed rows.
    pub(super) async fn repair(
        self,
        tx: &mut PgTransaction<'_>,
    ) -> Result<(ExecutionState, u64), Fault> {
        let Self { customer, id, stored, mut derived, reports, tags, .. } = self;
        let differs = |(stored, derived): (RecordedReport, TestReportState)| {
            of_report(&stored.state, &derived).next().map(|_| derived.repaired(&stored.state))
        };
        let changed: Vec<_> = reports.into_iter().filter_map(differs).collect();
        let mut repaired = changed.len();
        test_report::store::save(tx, customer, &changed).await?;
        if of_execution(&stored, &derived).next().is_some() {
            execution::store::save(tx, customer, &mut derived).await?;
            repaired += 1;
        }
        if tags != tags::of(&stored.execution.tags) {
            let project = ProjectId::from_record(&stored.execution.project_id)?;
            tags::replace(tx, customer, project, id, &stored.execution.tags).await?;
            repaired += 1;
        }
        Ok((derived, u64::try_from(repaired).unwrap_or(u64::MAX)))
    }
}
