//! Mutes: failures that do not count, because their causes are known or their test cases are muted.
//!
//! Whether a failure is muted is decided when it arrives, with what is in force at that moment, and recorded with
//! the failure. Later results of its report, after the mute has ended, do not change it. So `verify` and `rebuild`
//! derive the same at any later time.

mod store;

use std::collections::HashMap;

use assay_proto::{CustomerId, Fault, TestResult};
use sqlx::PgTransaction;

pub use self::store::marked;
use crate::progress::{execution::ExecutionState, report::TestReportState};

/// Marks the failures of failing reports that are muted at this moment: those that are known, and those of muted test
/// cases. Returns the reports whose failures are all marked, now or before, with their tickets. This alone decides it,
/// for results that arrive and for reviews.
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
    store::mute(tx, customer, &state.execution.project_id, failing).await
}

/// Marks the failures of reports as not muted, after the review that has muted them was taken back.
pub async fn unmute(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    reports: &[&String],
) -> Result<(), Fault> {
    store::unmark(tx, customer, reports).await
}

/// Mutes those of the failing reports that are about to be stored whose failures are muted. The ticket of a review
/// stays as long as its judgement holds.
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
    for report in &mut changed {
        let ticket = muted.remove(&report.published.id);
        // A muted report that is not muted any more has a failure with another cause.
        if ticket.is_none() && !report.is_muted() {
            continue;
        }
        report.published.is_muted = Some(ticket.is_some());
        if report.judgement.is_none() {
            report.ticket = ticket.unwrap_or_default();
        }
    }
    Ok(())
}
