//! The verdict of an execution: whether it meets the rules that its test set had when it was
//! requested.

mod store;

use assay_ledger::verdict::rules::{self, Facts};
use assay_proto::{
    CustomerId, ExecutionId, Fault, ProjectId,
    execution::{ExecutionSummary, Verdict},
};
use sqlx::PgPool;

use super::summary;
use crate::console_link::ConsoleLinks;

/// Returns the verdict of an execution of any project, or of this one.
pub(super) async fn of(
    db: &PgPool,
    console: &ConsoleLinks,
    customer: CustomerId,
    project: Option<ProjectId>,
    id: ExecutionId,
) -> Result<Verdict, Fault> {
    let summary = summary::of(db, console, customer, project, id).await?;
    of_summary(db, customer, id, summary).await
}

/// Returns the verdict of an execution with this outcome.
pub(crate) async fn of_summary(
    db: &PgPool,
    customer: CustomerId,
    id: ExecutionId,
    summary: ExecutionSummary,
) -> Result<Verdict, Fault> {
    let entry = summary.execution.unwrap_or_default();
    let changes = summary.changes.unwrap_or_default();
    let store::Judged { gate, unreached } = store::judged(db, customer, id).await?;
    let missing = store::not_executed(db, customer, id, &gate.required_test_cases).await?;
    let new = store::new_failures(db, customer, id).await?;
    let statistic = entry.statistic.clone().unwrap_or_default();
    let facts = Facts {
        status: entry.status(),
        statistic: &statistic,
        changes: &changes,
        new_failures: new.count,
        not_executed: &missing,
        unreached,
    };
    let rules = facts.outcomes(&gate);
    let state = rules::state(rules.as_deref());
    Ok(Verdict {
        execution_id: entry.id,
        test_set_name: entry.test_set_name,
        state: state.into(),
        rules: rules.unwrap_or_default(),
        statistic: Some(statistic),
        changes: Some(changes),
        new_failures: new.first,
        url: summary.url,
    })
}
