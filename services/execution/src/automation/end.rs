//! Ends leases, with their reports or by returning their schedules to the queue.

use assay_database::begin;
use assay_ledger::{
    execution,
    lease::{self, LeaseStatus, lost},
    progress::{
        execution::ExecutionState,
        report::{Ending, TestReportState},
    },
    schedule::{self, Schedule, queue::QueueName},
    settle::{end_reports, settle},
    test_report,
};
use assay_proto::{CustomerId, Fault, LeaseId, TestReportId, execution::CompleteLeaseInput};
use sqlx::{PgPool, PgTransaction};

use crate::queue::Queue;

/// A lease whose execution is locked.
pub(crate) struct LockedLease {
    id: LeaseId,
    status: LeaseStatus,
    schedule: Schedule,
    pub(crate) execution: ExecutionState,
}

impl LockedLease {
    /// Locks the execution of a lease. Fails if the lease was lost or released.
    pub(crate) async fn lock(
        tx: &mut PgTransaction<'_>,
        customer: CustomerId,
        id: LeaseId,
    ) -> Result<Self, Fault> {
        let schedule = lease::store::schedule_of(&mut **tx, customer, id).await?;
        let (project_id, execution_id) = (schedule.project_id, schedule.execution_id);
        let execution = execution::store::lock(tx, customer, project_id, execution_id).await?;
        let (status, _) = lease::store::status(&mut **tx, customer, id).await?;
        match status {
            LeaseStatus::Lost | LeaseStatus::Released => Err(lost()),
            LeaseStatus::Held | LeaseStatus::Completed | LeaseStatus::Canceled => {
                Ok(Self { id, status, schedule, execution })
            }
        }
    }

    /// Reads the report of the lease.
    pub(crate) async fn report(
        &self,
        tx: &mut PgTransaction<'_>,
        customer: CustomerId,
    ) -> Result<TestReportState, Fault> {
        let id = self.schedule.test_report_id;
        let reports = test_report::store::of_ids(tx, customer, &[id]).await?;
        reports.into_iter().next().ok_or_else(|| Fault::internal("a lease has no report"))
    }
}

/// Completes a lease if it is held, and ends its report.
pub(crate) async fn complete(
    db: &PgPool,
    queues: &Queue,
    customer: CustomerId,
    id: LeaseId,
    input: &CompleteLeaseInput,
) -> Result<(), Fault> {
    let mut tx = begin(db).await?;
    let mut lease = LockedLease::lock(&mut tx, customer, id).await?;
    let queue = QueueName::stored(lease.schedule.target_group.clone());
    if lease.status != LeaseStatus::Held {
        return leave(tx, queues, customer, lease, &queue).await;
    }
    lease::store::end(&mut tx, customer, lease.id, "Completed").await?;
    let report = lease.report(&mut tx, customer).await?;
    let comment = input.comment.as_deref().unwrap_or_default();
    if report.is_pending() {
        let ending = if input.engine_failure {
            Ending::EngineFailure(comment)
        } else if lease.execution.is_stopping() {
            Ending::Stopped
        } else {
            Ending::Aborted
        };
        end_report(&mut tx, customer, &mut lease.execution, report, ending).await?;
    }
    if !comment.is_empty() {
        let report = [lease.schedule.test_report_id];
        test_report::store::comment(&mut tx, customer, &report, comment).await?;
    }
    tx.commit().await?;
    if lease.execution.is_stopping() {
        queues.stop(customer, lease.schedule.execution_id).await;
    }
    notify_of_free(queues, customer, &queue).await;
    Ok(())
}

/// Notes that the engine of a lease that has ended does not use its environment and its values any more.
async fn leave(
    mut tx: PgTransaction<'_>,
    queues: &Queue,
    customer: CustomerId,
    lease: LockedLease,
    queue: &QueueName,
) -> Result<(), Fault> {
    if queue.is_limited() {
        lease::occupation::leave(&mut tx, customer, lease.id).await?;
        tx.commit().await?;
        notify_of_free(queues, customer, queue).await;
    }
    Ok(())
}

/// Notifies engines that an exclusive environment or values of pools may be free.
async fn notify_of_free(queues: &Queue, customer: CustomerId, queue: &QueueName) {
    if queue.is_limited() {
        queues.notify(customer, queue).await;
    }
}

/// Releases a lease if it is held. Its schedule returns to the queue, unless a failure has stopped
/// the execution.
pub(crate) async fn release(
    db: &PgPool,
    queues: &Queue,
    customer: CustomerId,
    id: LeaseId,
) -> Result<(), Fault> {
    let mut tx = begin(db).await?;
    let mut lease = match LockedLease::lock(&mut tx, customer, id).await {
        Ok(lease) if lease.status == LeaseStatus::Held => lease,
        Ok(lease) => {
            let queue = QueueName::stored(lease.schedule.target_group.clone());
            return leave(tx, queues, customer, lease, &queue).await;
        }
        Err(lost @ Fault::Conflict { .. }) => {
            let (status, _) = lease::store::status(&mut *tx, customer, id).await?;
            return if status == LeaseStatus::Released { Ok(()) } else { Err(lost) };
        }
        Err(fault) => return Err(fault),
    };
    lease::store::end(&mut tx, customer, id, "Released").await?;
    let report = lease.report(&mut tx, customer).await?;
    if lease.execution.is_stopping() && report.is_pending() {
        end_report(&mut tx, customer, &mut lease.execution, report, Ending::Stopped).await?;
    } else {
        requeue(&mut tx, customer, &lease.schedule).await?;
    }
    tx.commit().await?;
    queues.notify(customer, &QueueName::stored(lease.schedule.target_group)).await;
    Ok(())
}

async fn end_report(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: &mut ExecutionState,
    report: TestReportState,
    ending: Ending<'_>,
) -> Result<(), Fault> {
    let finished = end_reports(tx, customer, execution, &mut [report], ending).await?;
    settle(tx, customer, execution, finished).await
}

/// Returns a schedule to the queue.
async fn requeue(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    schedule: &Schedule,
) -> Result<(), Fault> {
    let requeued = schedule::store::requeue(tx, customer, &[schedule.id]).await?;
    let reports: Vec<TestReportId> = requeued.into_iter().map(|(report, _)| report).collect();
    test_report::store::mark_not_executed(tx, customer, &reports).await
}
