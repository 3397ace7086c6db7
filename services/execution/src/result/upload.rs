//! Stores the reports of test tools as completed executions.

use assay_auth::Caller;
use assay_events::ExecutionAction;
use assay_ledger::{
    change,
    execution::{self, rules::IdempotentRequest},
    failure,
    instance::{self, attempts},
    mute,
    origin::Origin,
    progress::{
        execution::ExecutionState,
        merge::{classify, merge},
        report::TestReportState,
    },
    settle::{count_instances, events::announce, expect_instances},
    test_report,
};
use assay_proto::{
    ExecutionId, Fault, ProjectId, TestSetId, catalog::Snapshot, execution::ExecutionMode,
};
use sqlx::PgTransaction;

use super::{resolve, rules::Reported};

/// Stores a completed execution with this id, its reports and instances.
pub(crate) async fn store(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    (id, project, set): (ExecutionId, ProjectId, TestSetId),
    origin: Origin,
    mut snapshot: Snapshot,
    results: Vec<Reported>,
    idempotent: Option<&IdempotentRequest>,
) -> Result<(), Fault> {
    let customer = caller.customer;
    let copies = std::mem::take(&mut snapshot.test_cases);
    let numbers = test_report::store::count(tx, customer, &copies).await?;
    let mode = ExecutionMode::External;
    let mut state = ExecutionState::new(caller, id, (project, set), snapshot, origin, mode);
    state.expect(copies.len());
    let case = |((id, copy), number)| TestReportState::new(id, copy, number, 0);
    let cases = state.ids_of_reports(0).zip(&copies).zip(numbers);
    let mut reports: Vec<_> = cases.map(case).collect();

    let results = resolve::to_reports(results, &reports, true)?;
    classify(&mut reports, &results);
    let mut highest = vec![0; reports.len()];
    let merged = merge(results, Vec::new(), &mut highest, false);
    expect_instances(&mut state, &mut reports, &highest)?;
    count_instances(&mut state, &mut reports, &merged)?;
    state.count_all(&reports);
    state.complete();

    execution::store::insert(tx, caller, &mut state, idempotent).await?;
    failure::store::insert(tx, customer, &state, &reports, merged.added.iter()).await?;
    change::determine(tx, customer, &state, &mut reports).await?;
    mute::mute(tx, customer, &state, &mut reports).await?;
    test_report::store::insert(tx, customer, id, &copies, &reports).await?;
    let instances: Vec<_> = merged.added.iter().collect();
    instance::store::insert(tx, customer, &reports, &instances).await?;
    attempts::insert(tx, customer, &reports, merged.added.iter(), false).await?;
    let finished: Vec<_> = reports.into_iter().map(|report| report.published).collect();
    announce(tx, customer, &state, ExecutionAction::Completed, &finished).await
}
