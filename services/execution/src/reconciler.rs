//! Expires leases that were not renewed, and ends executions whose deadline has passed. All
//! replicas of the service may do this at the same time.
//!
//! Time during which no engine could renew its lease or report a result does not count: see [`Uptime`].

use std::time::{Duration, Instant};

use assay_database::{Database, begin};
use assay_ledger::{
    execution::{self, store::IS_LAUNCHED},
    lease::{self, uptime::Uptime},
    progress::{
        execution::ExecutionState,
        report::{Ending, TestReportState},
    },
    schedule::{self, queue::QueueName, store::ExpiredSchedule},
    settle::{end_execution, end_reports, settle},
    test_report,
    time_limits::TimeLimits,
};
use assay_proto::{CustomerId, ExecutionId, Fault, TestReportId};
use assay_runtime::Runtime;
use assay_work::Age;
use sqlx::{PgPool, PgTransaction};
use tokio::time::sleep;

use crate::{execution::reporter, queue::Queue};

/// Maximum interval between rounds. Short leases shorten it.
const INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of executions of each kind in a round.
const BATCH: i64 = 100;

/// The metric of expired leases.
const EXPIRED: &str = "assay_leases_expired_total";

/// The metric of leases that have timed out.
const TIMED_OUT: &str = "assay_leases_timed_out_total";

/// The task that expires leases and ends executions.
#[derive(Clone)]
pub struct Reconciler {
    db: PgPool,
    queue: Queue,
    settings: TimeLimits,
}

impl Reconciler {
    pub fn new(db: &PgPool, queue: &Queue, settings: TimeLimits) -> Self {
        Self { db: db.clone(), queue: queue.clone(), settings }
    }

    /// Starts the task. It works until the program stops.
    pub fn spawn(self, runtime: &Runtime, database: &Database) {
        describe_metrics();
        let (database, stopping) = (database.clone(), runtime.stopping());
        runtime.spawn("reconciler", async move {
            stopping.run_until_cancelled(database.ready()).await;
            let interval = INTERVAL.min(self.settings.lease() / 4);
            let mut uptime = Uptime::new(self.settings.lease());
            // The metric is 0 until the first lease expires, not absent.
            metrics::counter!(EXPIRED).increment(0);
            metrics::counter!(TIMED_OUT).increment(0);
            while !stopping.is_cancelled() {
                if let Err(fault) = self.round_within(&mut uptime).await {
                    tracing::warn!(error = %fault, "cannot read the executions to reconcile");
                }
                if let Ok(held) = lease::store::count_held(&self.db).await {
                    metrics::gauge!("assay_leases_held").set(held);
                }
                stopping.run_until_cancelled(sleep(interval)).await;
            }
            Ok(())
        });
    }

    /// Reconciles the executions that need it now, as after a long uptime.
    pub async fn round(&self) -> Result<(), Fault> {
        self.round_within(&mut Uptime::new(Duration::ZERO)).await
    }

    /// Reconciles the executions that need it now. Leases expire and time out only after an uptime that is long enough.
    /// A failure of one execution does not affect the others.
    pub async fn round_within(&self, uptime: &mut Uptime) -> Result<(), Fault> {
        let unsettled = execution::store::unsettled(&self.db, BATCH).await?;
        uptime.note(Instant::now());
        for (customer, execution) in unsettled {
            if let Err(fault) = self.reconcile(customer, execution, uptime).await {
                let causes = anyhow::Error::from(fault);
                tracing::warn!(error = %format!("{causes:#}"), execution.id = %execution,
                    "cannot reconcile an execution");
            }
        }
        Ok(())
    }

    async fn reconcile(
        &self,
        customer: CustomerId,
        id: ExecutionId,
        uptime: &mut Uptime,
    ) -> Result<(), Fault> {
        let mut tx = begin(&self.db).await?;
        let Some(mut state) = execution::store::try_lock(&mut tx, customer, id).await? else {
            // Another transaction has locked it. The next round tries again.
            return Ok(());
        };
        let may_expire = uptime.note(Instant::now());
        let (mut target_groups, mut expired, mut timed_out) = (Vec::new(), 0, 0);
        let mut stops = true;
        if state.has_ended() {
            lease::store::cancel_all(&mut tx, customer, id).await?;
        } else if execution::store::is_overdue(&mut tx, customer, id).await? {
            let expected = state.execution.reporters;
            state.miss(reporter::count_missing(&mut tx, customer, id, expected).await?);
            end_execution(&mut tx, customer, &mut state, Ending::Aborted).await?;
        } else {
            let schedules = if may_expire {
                lease::store::expire(&mut tx, customer, id).await?
            } else {
                Vec::new()
            };
            expired = schedules.len() as u64;
            let schedules =
                schedule::store::count_lost_leases(&mut tx, customer, &schedules).await?;
            target_groups = self.requeue_or_fail(&mut tx, customer, &mut state, schedules).await?;
            if may_expire {
                timed_out = time_out(&mut tx, self.settings, customer, &mut state, id).await?;
            }
            stops = timed_out > 0 || state.is_stopping();
        }
        tx.commit().await?;
        metrics::counter!(EXPIRED).increment(expired);
        metrics::counter!(TIMED_OUT).increment(timed_out);
        if stops {
            self.queue.stop(customer, id).await;
        }
        target_groups.dedup();
        for target_group in target_groups {
            self.queue.notify(customer, &QueueName::stored(target_group)).await;
        }
        Ok(())
    }

    /// Returns schedules with expired leases to the queue, or ends their reports if the execution
    /// is stopping or too many leases have expired. Returns the target groups to notify.
    async fn requeue_or_fail(
        &self,
        tx: &mut PgTransaction<'_>,
        customer: CustomerId,
        state: &mut ExecutionState,
        schedules: Vec<ExpiredSchedule>,
    ) -> Result<Vec<String>, Fault> {
        let fails = |schedule: &ExpiredSchedule| {
            state.is_stopping() || schedule.lost_leases.unsigned_abs() >= self.settings.lease_losses
        };
        let (failed, others): (Vec<_>, Vec<_>) = schedules.into_iter().partition(fails);
        let others: Vec<_> = others.into_iter().map(|schedule| schedule.id).collect();
        let requeued = schedule::store::requeue(tx, customer, &others).await?;
        let (reports, groups): (Vec<TestReportId>, Vec<String>) = requeued.into_iter().unzip();
        test_report::store::mark_not_executed(tx, customer, &reports).await?;
        if !failed.is_empty() {
            self.fail(tx, customer, state, &failed).await?;
        } else if state.is_dispatched() && state.statistic.test_cases_pending == 0 {
            settle(tx, customer, state, Vec::new()).await?;
        }
        Ok(groups)
    }

    /// Ends the reports of schedules: canceled if the execution is stopping, otherwise as engine
    /// failures.
    async fn fail(
        &self,
        tx: &mut PgTransaction<'_>,
        customer: CustomerId,
        state: &mut ExecutionState,
        schedules: &[ExpiredSchedule],
    ) -> Result<(), Fault> {
        let ids: Vec<_> = schedules.iter().map(|schedule| schedule.test_report_id).collect();
        let mut reports = test_report::store::of_ids(tx, customer, &ids).await?;
        let stopping = state.is_stopping();
        let comment = format!(
            "Given up: {} engines began this test and did not renew their leases.",
            self.settings.lease_losses
        );
        let ending = if stopping { Ending::Stopped } else { Ending::EngineFailure(&comment) };
        let finished = end_reports(tx, customer, state, &mut reports, ending).await?;
        if !stopping {
            test_report::store::comment(tx, customer, &ids, &comment).await?;
        }
        settle(tx, customer, state, finished).await
    }
}

/// Ends the leases whose engines have reported no instance for longer than it may take, with their
/// reports. Returns their number.
async fn time_out(
    tx: &mut PgTransaction<'_>,
    settings: TimeLimits,
    customer: CustomerId,
    state: &mut ExecutionState,
    id: ExecutionId,
) -> Result<u64, Fault> {
    let mut timed_out = 0;
    for lease in lease::silence::silent(tx, customer, id).await? {
        timed_out += 1;
        lease::store::end(tx, customer, lease.id, "Canceled").await?;
        let report = [lease.test_report_id];
        let mut reports = test_report::store::of_ids(tx, customer, &report).await?;
        reports.retain(TestReportState::is_pending);
        if reports.is_empty() {
            continue;
        }
        let minutes = settings.test_in_min(lease.maximum_duration_in_min);
        let comment = format!(
            "Timed out: the engine has reported no result within the {minutes} minutes that an \
             instance may take, and has not stopped the test."
        );
        let ending = Ending::EngineFailure(&comment);
        let finished = end_reports(tx, customer, state, &mut reports, ending).await?;
        test_report::store::comment(tx, customer, &report, &comment).await?;
        settle(tx, customer, state, finished).await?;
    }
    Ok(timed_out)
}

/// Returns the age of the oldest lease that has expired and was not taken back, and of the oldest execution
/// that is past its deadline and has not ended.
pub fn age() -> Age {
    Age {
        metric: "assay_reconciliation_age_seconds",
        help: "Time since the oldest lease that was not taken back has expired, or the deadline of the \
               oldest execution that has not ended has passed.",
        label: None,
        due_since: format!(
            "select min(due) from (
                 (select expires_at as due from lease l
                  where ended_at is null and expires_at <= now() and exists (
                      select from live_execution e
                      where e.customer_id = l.customer_id and e.id = l.execution_id
                  )
                  order by expires_at limit 1)
                 union all
                 (select deadline from live_execution e
                  where status in ('Queued', 'Running') and deadline <= now() and not {IS_LAUNCHED}
                  order by deadline limit 1)
             ) as late"
        ),
    }
}

fn describe_metrics() {
    use metrics::{Unit, describe_counter, describe_gauge};

    describe_gauge!(
        "assay_leases_held",
        Unit::Count,
        "Leases that engines hold, over all customers."
    );
    describe_counter!(
        EXPIRED,
        Unit::Count,
        "Leases taken back because their engine did not renew them in time."
    );
    describe_counter!(
        TIMED_OUT,
        Unit::Count,
        "Leases ended because their engine renewed them but reported no result in time."
    );
}
