//! Mutes: failures that do not count, because their causes are known or their test cases are muted.
//!
//! Whether a failure is muted is decided once, with what is in force at that moment, and recorded with the
//! failure. So `verify` and `rebuild` derive the same at any later time, whatever has ended meanwhile.

mod store;

use std::collections::HashMap;

use assay_proto::{CustomerId, Fault, TestResult};
use sqlx::PgTransaction;

pub use self::store::marked;
use crate::progress::{execution::ExecutionState, report::TestReportState};

/// Returns the failing reports that are muted, with their tickets: those whose failures are all known at
/// this moment, and those whose test cases are muted. Marks these failures. This alone decides it, for
/// results that arrive and for reviews.
pub async fn muted(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
    failing: &[String],
) -> Result<HashMap<String, String>, Fault> {
    // Nothing that is muted now applies to the past.
    if state.is_past() {
        return Ok(HashMap::new());
    }
    let muted = store::muted(tx, customer, &state.execution.project_id, failing).await?;
    store::mark(tx, customer, &muted.keys().collect::<Vec<_>>(), true).await?;
    Ok(muted)
}

/// Marks the failures of reports as not muted, after the review that has muted them was taken back.
pub async fn unmute(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    reports: &[&String],
) -> Result<(), Fault> {
    store::mark(tx, customer, reports, false).await
}

/// Mutes those of the failing reports that are about to be stored whose failures are muted.
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
            Some(ticket) => (report.published.is_muted, report.ticket) = (Some(true), ticket),
            // A retry has another cause.
            None if report.is_muted() => {
                (report.published.is_muted, report.ticket) = (Some(false), String::new());
                unmuted.push(&report.published.id);
            }
            None => {}
        }
    }
    store::mark(tx, customer, &unmuted, false).await
}
