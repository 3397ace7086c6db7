//! The first failure of an execution.

use assay_proto::{CustomerId, Fault, TestReportId, events::ReportState};
use sqlx::PgTransaction;

use crate::{progress::execution::ExecutionState, test_report};

/// Notes the first failure of an execution that is not muted. It is published while the execution is running.
pub(super) async fn find(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &mut ExecutionState,
    finished: &[ReportState],
) -> Result<(), Fault> {
    let fails = |report: &&ReportState| report.result().is_failure() && !report.is_muted();
    let Some(first) = finished.iter().find(fails).filter(|_| !state.has_failed) else {
        return Ok(());
    };
    state.has_failed = true;
    if !state.has_ended() {
        let id = TestReportId::from_record(&first.id)?;
        state.first_failure = test_report::store::failed(tx, customer, id).await?;
    }
    Ok(())
}
