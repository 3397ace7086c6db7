//! The task that evaluates the monitors of a project after the end of an execution. One replica of the service
//! does this at a time, for all customers in turns.
//!
//! An execution is queued when its results are added up ([`crate::insight`]), so nothing waits for monitors.
//! Each is evaluated once, in a transaction of its own: the states that it sets, the alarms and what was done
//! are stored together. An execution that is evidence about the environment says nothing about tests.

use std::time::Duration;

use assay_database::{Database, begin};
use assay_judge::{
    Rule, is_outage,
    monitor::{Finding, observe},
};
use assay_ledger::{change, execution, monitor::lock_all, progress::execution::ExecutionState};
use assay_proto::{
    CustomerId, ExecutionId, Fault, MonitorId, ProjectId,
    execution::{Monitor, MonitorActionKind},
};
use assay_runtime::Runtime;
use assay_work::{Attempt, Patience, Queue, Waiting, Work};
use sqlx::{PgPool, PgTransaction};
use uuid::Uuid;

use super::{
    act::{self, Ended, States},
    alarm, rules,
    runs::{self, Candidate},
    store,
};

/// Evaluating the monitors of a project after the end of an execution. If it is dropped, they do not notice
/// this execution.
pub(crate) const MONITOR: Work = Work {
    kind: "monitor",
    queue: Queue::Unfinished {
        patience: Patience::of_derivations(),
        pending: "exists (
            select from monitor_evaluation e
            where e.customer_id = w.customer_id and e.execution_id = w.id
        )",
        drop: "delete from monitor_evaluation where (customer_id, execution_id)
                   in (select * from unnest($1::uuid[], $2::uuid[]))",
    },
};

/// Interval between rounds.
const INTERVAL: Duration = Duration::from_secs(1);

/// The ended executions that monitors have not evaluated yet.
const EVALUATIONS: Waiting =
    Waiting { table: "monitor_evaluation", id: "execution_id", condition: "true" };

/// Maximum number of test cases on which a monitor acts after one execution. Others follow with their next runs.
pub(super) const MOST_RAISED: usize = 100;

/// Starts the task.
pub(crate) fn spawn(runtime: &Runtime, database: &Database) {
    let failure = "cannot read the executions that monitors evaluate";
    let round = |db| async move { evaluate_monitors(&db).await };
    database.every(runtime, "monitors", INTERVAL, failure, round);
}

/// Evaluates the monitors after all executions that are queued, unless another replica is doing so. A
/// failure of one does not affect the others.
pub async fn evaluate_monitors(db: &PgPool) -> Result<(), Fault> {
    let due = |db| async move { MONITOR.due_of(&db, EVALUATIONS).await };
    MONITOR.do_all(db, due, evaluate).await
}

async fn evaluate(
    db: PgPool,
    customer: CustomerId,
    id: Uuid,
    attempt: Attempt,
) -> Result<(), Fault> {
    let id = ExecutionId(id);
    let mut tx = begin(&db).await?;
    match execution::store::find(&mut *tx, customer, None, id).await {
        Ok(state) => evaluate_execution(&mut tx, customer, id, &state).await?,
        // Deleted meanwhile.
        Err(Fault::NotFound(_)) => {}
        Err(fault) => return Err(fault),
    }
    let done = "delete from monitor_evaluation where customer_id = $1 and execution_id = $2";
    sqlx::query(done).bind(customer).bind(id).execute(&mut *tx).await?;
    attempt.done(&mut *tx).await?;
    Ok(tx.commit().await?)
}

async fn evaluate_execution(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ExecutionId,
    state: &ExecutionState,
) -> Result<(), Fault> {
    let project = ProjectId::from_record(&state.execution.project_id)?;
    let branch = state.execution.branch.as_deref().unwrap_or_default();
    lock_all(tx, customer, &[project]).await?;
    let mut monitors = store::of_project(tx, customer, project).await?;
    let facts = store::facts(tx, customer, id).await?;
    monitors.retain(|monitor| rules::measures(monitor, branch, facts.is_of_default_branch));
    if monitors.is_empty()
        || facts.is_merged
        || state.is_past()
        || is_evidence_of_outage(state, facts.muted)
    {
        return Ok(());
    }
    let ended = Ended { customer, project, id, until: facts.until };
    let rule = change::rule_of(tx, customer, id).await?;
    let mut executions = change::series(tx, customer, state).await?;
    executions.insert(0, id.0);
    let mut states = States::default();
    for monitor in &monitors {
        apply(tx, &ended, monitor, (&executions, rule), &mut states).await?;
    }
    Ok(())
}

/// The change of the alarm of a test case, with the reason.
pub(super) enum Step {
    Raise(String),
    End(MonitorActionKind, String),
}

impl Step {
    pub(super) fn of(finding: Finding, candidate: &Candidate) -> Option<Self> {
        let is_raised = candidate.is_raised;
        match finding {
            Finding::Over(reason) if !is_raised => Some(Self::Raise(reason)),
            Finding::Recovered(reason) if is_raised && candidate.may_recover => {
                Some(Self::End(MonitorActionKind::Recovered, reason))
            }
            Finding::Broken(reason) if is_raised => {
                Some(Self::End(MonitorActionKind::Broken, reason))
            }
            _ => None,
        }
    }
}

/// Whether nearly everything has failed, apart from what is muted.
pub(super) fn is_evidence_of_outage(state: &ExecutionState, muted: i32) -> bool {
    let statistic = &state.statistic;
    let failed = statistic.test_cases_failed + statistic.test_cases_with_error;
    is_outage(statistic.test_cases_passed + failed, failed - muted)
}

/// Applies a monitor to the test cases of an execution.
async fn apply(
    tx: &mut PgTransaction<'_>,
    ended: &Ended,
    monitor: &Monitor,
    (executions, rule): (&[Uuid], Rule),
    states: &mut States,
) -> Result<(), Fault> {
    let (customer, id) = (ended.customer, MonitorId::from_record(&monitor.id)?);
    let candidates = runs::candidates(tx, customer, ended.id, (id, monitor)).await?;
    let cases: Vec<_> = candidates.iter().map(|candidate| candidate.id).collect();
    let runs = runs::Runs::read(tx, customer, executions, &cases).await?;
    let thresholds = rules::thresholds(monitor);
    let (mut raised, mut has_acted) = (0, false);
    for candidate in &candidates {
        let finding = observe(&thresholds, &runs.of(candidate), rule);
        has_acted |= match Step::of(finding, candidate) {
            Some(Step::Raise(reason)) if raised < MOST_RAISED => {
                let has_raised =
                    act::raise(tx, ended, (id, monitor), candidate, &reason, states).await?;
                raised += usize::from(has_raised);
                has_raised
            }
            Some(Step::End(kind, reason)) => {
                act::end(tx, ended, (id, monitor), candidate, (kind, &reason)).await?;
                true
            }
            Some(Step::Raise(_)) | None => false,
        };
    }
    if has_acted { alarm::trim(tx, customer, id).await } else { Ok(()) }
}
