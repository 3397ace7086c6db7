//! Sees to it that nothing runs for ever: takes work back from engines that are not heard of any
//! more, and ends executions whose time is over. Replicas of the service may do this all at once.

use std::time::Duration;

use assay_proto::{CustomerId, ExecutionId, Fault, TestReportId};
use assay_runtime::{Database, Runtime, begin};
use sqlx::{PgPool, PgTransaction};
use tokio::time::sleep;

use crate::{
    execution,
    lease::{self, settings::LeaseSettings},
    progress::{execution::ExecutionState, report::Ending},
    queue::Queue,
    schedule::{self, store::ExpiredSchedule},
    settle::{end_execution, end_reports, settle},
    test_report,
};

/// How often it looks, and more often where leases are very short.
const INTERVAL: Duration = Duration::from_secs(1);

/// How many executions it looks after in one round, of each kind.
const BATCH: i64 = 100;

/// How many leases were taken back from engines.
const EXPIRED: &str = "assay_leases_expired_total";

/// What looks after executions.
#[derive(Clone)]
pub struct Reconciler {
    db: PgPool,
    queue: Queue,
    settings: LeaseSettings,
}

impl Reconciler {
    pub fn new(db: &PgPool, queue: &Queue, settings: LeaseSettings) -> Self {
        Self { db: db.clone(), queue: queue.clone(), settings }
    }

    /// Works until the program stops.
    pub fn spawn(self, runtime: &Runtime, database: &Database) {
        describe_metrics();
        let (database, stopping) = (database.clone(), runtime.stopping());
        runtime.spawn("reconciler", async move {
            stopping.run_until_cancelled(database.ready()).await;
            let interval = INTERVAL.min(self.settings.lease() / 4);
            // What has not happened yet can be seen, too.
            metrics::counter!(EXPIRED).increment(0);
            while !stopping.is_cancelled() {
                if let Err(fault) = self.round().await {
                    tracing::warn!(error = %fault, "executions were not looked after");
                }
                if let Ok(held) = lease::store::count_held(&self.db).await {
                    metrics::gauge!("assay_leases_held").set(held);
                }
                stopping.run_until_cancelled(sleep(interval)).await;
            }
            Ok(())
        });
    }

    /// Looks once after what needs it now. One execution that cannot be helped does not keep others
    /// from being.
    pub async fn round(&self) -> Result<(), Fault> {
        for (customer, execution) in execution::store::unsettled(&self.db, BATCH).await? {
            if let Err(fault) = self.look_after(customer, execution).await {
                let causes = anyhow::Error::from(fault);
                tracing::warn!(error = %format!("{causes:#}"), execution.id = %execution,
                    "an execution was not looked after");
            }
        }
        Ok(())
    }

    async fn look_after(&self, customer: CustomerId, id: ExecutionId) -> Result<(), Fault> {
        let mut tx = begin(&self.db).await?;
        let Some(mut state) = execution::store::try_lock(&mut tx, customer, id).await? else {
            // Somebody is at it; there is another round.
            return Ok(());
        };
        let (mut told, mut expired) = (Vec::new(), 0);
        if state.has_ended() {
            lease::store::cancel_all(&mut tx, customer, id).await?;
        } else if execution::store::is_overdue(&mut tx, customer, id).await? {
            end_execution(&mut tx, customer, &mut state, Ending::Aborted).await?;
        } else {
            let lost = lease::store::expire(&mut tx, customer, id).await?;
            expired = lost.len() as u64;
            let lost = schedule::store::count_lost_leases(&mut tx, customer, &lost).await?;
            told = self.take_back(&mut tx, customer, &mut state, lost).await?;
        }
        tx.commit().await?;
        metrics::counter!(EXPIRED).increment(expired);
        told.dedup();
        for group in told {
            self.queue.notify(customer, &group).await;
        }
        Ok(())
    }

    /// Takes work back from engines that are not heard of any more: into the queue, unless it is
    /// not to be done any more, or has been the end of too many engines. Says which engines are to
    /// be told.
    async fn take_back(
        &self,
        tx: &mut PgTransaction<'_>,
        customer: CustomerId,
        state: &mut ExecutionState,
        lost: Vec<ExpiredSchedule>,
    ) -> Result<Vec<String>, Fault> {
        let is_hopeless = |lost: &ExpiredSchedule| {
            state.is_stopping() || lost.lost_leases.unsigned_abs() >= self.settings.lease_losses
        };
        let (hopeless, again): (Vec<_>, Vec<_>) = lost.into_iter().partition(is_hopeless);
        let again: Vec<_> = again.into_iter().map(|lost| lost.id).collect();
        let back = schedule::store::requeue(tx, customer, &again).await?;
        let (reports, groups): (Vec<TestReportId>, Vec<String>) = back.into_iter().unzip();
        test_report::store::mark_not_executed(tx, customer, &reports).await?;
        if !hopeless.is_empty() {
            self.give_up(tx, customer, state, &hopeless).await?;
        } else if state.is_dispatched() && state.statistic.test_cases_pending == 0 {
            settle(tx, customer, state, Vec::new()).await?;
        }
        Ok(groups)
    }

    async fn give_up(
        &self,
        tx: &mut PgTransaction<'_>,
        customer: CustomerId,
        state: &mut ExecutionState,
        hopeless: &[ExpiredSchedule],
    ) -> Result<(), Fault> {
        let ids: Vec<_> = hopeless.iter().map(|lost| lost.test_report_id).collect();
        let mut reports = test_report::store::of_ids(tx, customer, &ids).await?;
        let stopping = state.is_stopping();
        let ending = if stopping { Ending::Canceled } else { Ending::EngineFailure };
        let finished = end_reports(tx, customer, state, &mut reports, ending).await?;
        if !stopping {
            let comment = format!(
                "Given up: {} engines began with this test and were not heard of again.",
                self.settings.lease_losses
            );
            test_report::store::comment(tx, customer, &ids, &comment).await?;
        }
        settle(tx, customer, state, finished).await
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
}
