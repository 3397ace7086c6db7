//! Known failures: causes that are muted in later executions until a date.

pub mod event;
pub mod rules;
pub mod store;

use std::collections::HashMap;

use assay_proto::{CustomerId, Fault, TestResult};
use sqlx::PgTransaction;

use crate::progress::{execution::ExecutionState, report::TestReportState};

/// Returns the failing reports that are muted, with their tickets: those whose failures are all known at
/// this moment. Marks these failures as known. This alone decides it, for results that arrive and for reviews.
pub async fn muted(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
    failing: &[String],
) -> Result<HashMap<String, String>, Fault> {
    // Known failures do not apply to the past.
    if state.is_past() {
        return Ok(HashMap::new());
    }
    let muted = store::muted(tx, customer, &state.execution.project_id, failing).await?;
    store::mark(tx, customer, &muted.keys().collect::<Vec<_>>(), true).await?;
    Ok(muted)
}

/// Mutes those of the failing reports that are about to be stored whose failures are all known.
pub async fn mute(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
    reports: &mut [TestReportState],
) -> Result<(), Fault> {
    let mut changed: Vec<_> = reports.iter_mut().filter(|report| report.changed).collect();
    let failing: Vec<String> = changed
        .iter()
        .filter(|report| report.ended_result().is_some_and(TestResult::is_failure))
        .map(|report| report.published.id.clone())
        .collect();
    let mut muted = muted(tx, customer, state, &failing).await?;
    let mut unmuted = Vec::new();
    for report in &mut changed {
        match muted.remove(&report.published.id) {
            Some(ticket) => (report.is_muted, report.ticket) = (true, ticket),
            // A retry has another cause.
            None if report.is_muted => {
                (report.is_muted, report.ticket) = (false, String::new());
                unmuted.push(&report.published.id);
            }
            None => {}
        }
    }
    store::mark(tx, customer, &unmuted, false).await
}
