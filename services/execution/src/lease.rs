//! Leases: how engines fetch work, say that they are at it, and report what came of it.
//!
//! All that a lease brings is added under the lock of its execution, by somebody who has looked
//! whether it still holds; and it is lost under that lock. So of two engines that come to work at
//! the same schedule, only the later one is heard.

mod answer;
mod hand_over;
mod rules;
mod settings;
pub(crate) mod store;
mod take;

use assay_auth::Caller;
use assay_proto::{
    CustomerId, Fault, LeaseId, TestReportId,
    execution::{
        CompleteLeaseInput, CompleteLeaseRequest, InstanceBatch, LeaseBatch, LeaseSchedulesRequest,
        LeaseState, ReleaseLeaseRequest, RenewLeaseRequest, ReportInstancesRequest,
        automation_service_server,
    },
};
use assay_records::Check;
use assay_runtime::{begin, body::Piece, list::Batches};
use futures::{StreamExt, TryStreamExt, stream};
use sqlx::{PgExecutor, PgPool, PgTransaction};
use tonic::{Request, Response, Status, Streaming};

pub use self::settings::Settings;
use self::{
    rules::{Wanted, lost},
    store::{Place, State},
};
use crate::{
    catalog::Catalog,
    execution::{self, Run, end, settle},
    instance,
    limits::IngestLimits,
    queue::Queue,
    result::{Source, first, place_in, read_json, record},
    schedule,
    test_report::{self, Ending, Progress},
};

/// How many instances one message lists.
const LISTED: usize = 1000;

/// Answers calls of engines.
pub(crate) struct AutomationService {
    pub(crate) db: PgPool,
    pub(crate) catalog: Catalog,
    pub(crate) queue: Queue,
    pub(crate) settings: Settings,
    pub(crate) limits: IngestLimits,
}

/// A lease, its execution, which is locked, and where the lease stands.
struct Opened {
    id: LeaseId,
    place: Place,
    run: Run,
    state: State,
}

impl Opened {
    async fn lock(
        tx: &mut PgTransaction<'_>,
        customer: CustomerId,
        id: LeaseId,
    ) -> Result<Self, Fault> {
        let place = store::find(&mut **tx, customer, id).await?;
        let run = execution::store::lock(tx, customer, place.project, place.execution).await?;
        let (state, _) = store::state(&mut **tx, customer, id).await?;
        match state {
            State::Lost | State::Released => Err(lost()),
            State::Held | State::Completed | State::Canceled => Ok(Self { id, place, run, state }),
        }
    }

    async fn report(
        &self,
        tx: &mut PgTransaction<'_>,
        customer: CustomerId,
    ) -> Result<Progress, Fault> {
        let reports = test_report::store::of_ids(tx, customer, &[self.place.report]).await?;
        reports.into_iter().next().ok_or_else(|| Fault::internal("a lease has no report"))
    }
}

/// Fails if a lease was lost or given back: nobody listens to its engine any more.
pub(crate) async fn check_not_lost(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: LeaseId,
) -> Result<(), Fault> {
    match store::state(db, customer, id).await?.0 {
        State::Lost | State::Released => Err(lost()),
        State::Held | State::Completed | State::Canceled => Ok(()),
    }
}

#[tonic::async_trait]
impl automation_service_server::AutomationService for AutomationService {
    type LeaseSchedulesStream = Batches<LeaseBatch>;
    type ReportInstancesStream = Batches<InstanceBatch>;

    async fn lease_schedules(
        &self,
        request: Request<LeaseSchedulesRequest>,
    ) -> Result<Response<Self::LeaseSchedulesStream>, Status> {
        let caller = Caller::of(&request)?;
        let wanted = Wanted::read(&caller, request.into_inner().lease.unwrap_or_default())?;
        let take = || take::take(&self.db, &self.settings, &caller, &wanted);
        let look = || self.limits.look(caller.customer, take());
        let found =
            self.queue.wait(caller.customer, &wanted.target_group, wanted.patience, look).await?;
        let Some(mut haul) = found else { return Ok(Response::new(stream::empty().boxed())) };
        let begun = take::show_begun(&self.db, &caller, &haul);
        if let Err(fault) = self.limits.look(caller.customer, begun).await {
            tracing::warn!(error = %fault, "an execution does not show that it has begun");
        }
        match self.hand_over(&caller, &mut haul).await {
            Ok(records) => Ok(answer::answer(haul, records)),
            Err(status) => {
                self.give_back(caller.customer, &haul).await;
                Err(status)
            }
        }
    }

    async fn renew_lease(
        &self,
        request: Request<RenewLeaseRequest>,
    ) -> Result<Response<LeaseState>, Status> {
        let customer = Caller::of(&request)?.customer;
        let id = LeaseId::from_path(&request.get_ref().id)?;
        let renewed = store::renew(&self.db, customer, id, self.settings.lease()).await?;
        let (expires_at, goes_on) = match renewed {
            Some(renewed) => renewed,
            None => match store::state(&self.db, customer, id).await? {
                (State::Canceled | State::Completed, expired_at) => (expired_at, false),
                _ => return Err(lost().into()),
            },
        };
        Ok(Response::new(LeaseState { r#continue: goes_on, expires_at: Some(expires_at) }))
    }

    async fn report_instances(
        &self,
        request: Request<Streaming<ReportInstancesRequest>>,
    ) -> Result<Response<Self::ReportInstancesStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let mut messages = request.into_inner();
        let head = first(&mut messages).await?;
        let id = LeaseId::from_path(head.id.as_deref().unwrap_or_default())?;
        // So that nobody sends megabytes for nothing.
        let place = self.limits.look(customer, store::find(&self.db, customer, id)).await?;

        let pieces = stream::iter([Ok(head)]).chain(messages);
        let pieces =
            pieces.map_ok(|part| Piece { chunk: part.chunk, last: part.last, next_file: false });
        let parse = |body| read_json(body, Source::Engine);
        let (results, memory) = self.limits.intake.read(customer, pieces, parse).await?;
        let numbers: Vec<i32> = results.iter().map(|result| result.outcome.instance_nr).collect();
        let writing = self.limits.write(customer, place.execution.0).await?;
        let mut tx = begin(&self.db).await?;
        let mut lease = Opened::lock(&mut tx, customer, id).await?;
        let mut reports = [lease.report(&mut tx, customer).await?];
        let instances = place_in(results, &reports[0])?;
        record(&mut tx, customer, &mut lease.run, &mut reports, instances).await?;
        tx.commit().await.map_err(Fault::from)?;
        drop((writing, memory));
        self.instances(customer, place.report, &numbers).await
    }

    async fn complete_lease(
        &self,
        request: Request<CompleteLeaseRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let id = LeaseId::from_path(&request.id)?;
        let input = request.completion.unwrap_or_default();
        let mut check = Check::default();
        check.texts(&input);
        check.done()?;

        let mut tx = begin(&self.db).await?;
        let mut lease = Opened::lock(&mut tx, customer, id).await?;
        if lease.state == State::Held {
            complete(&mut tx, customer, &mut lease, &input).await?;
            tx.commit().await.map_err(Fault::from)?;
        }
        Ok(Response::new(()))
    }

    async fn release_lease(
        &self,
        request: Request<ReleaseLeaseRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let id = LeaseId::from_path(&request.get_ref().id)?;
        self.release(customer, id).await?;
        Ok(Response::new(()))
    }
}

/// Ends a lease that holds, and its report with it.
async fn complete(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    lease: &mut Opened,
    input: &CompleteLeaseInput,
) -> Result<(), Fault> {
    store::end(tx, customer, lease.id, "Completed").await?;
    let report = lease.report(tx, customer).await?;
    if report.is_pending() {
        let ending = if input.engine_failure {
            Ending::EngineFailure
        } else if lease.run.is_stopping() {
            Ending::Canceled
        } else {
            Ending::Aborted
        };
        let finished = end(tx, customer, &mut lease.run, &mut [report], ending).await?;
        settle(tx, customer, &mut lease.run, finished).await?;
    }
    if let Some(comment) = input.comment.as_deref().filter(|comment| !comment.is_empty()) {
        let report = [lease.place.report];
        test_report::store::comment(tx, customer, &report, comment).await?;
    }
    Ok(())
}

impl AutomationService {
    async fn release(&self, customer: CustomerId, id: LeaseId) -> Result<(), Fault> {
        let mut tx = begin(&self.db).await?;
        let mut lease = match Opened::lock(&mut tx, customer, id).await {
            Ok(lease) if lease.state == State::Held => lease,
            Ok(_) => return Ok(()),
            Err(lost @ Fault::Conflict { .. }) => {
                let (state, _) = store::state(&mut *tx, customer, id).await?;
                return if state == State::Released { Ok(()) } else { Err(lost) };
            }
            Err(fault) => return Err(fault),
        };
        store::end(&mut tx, customer, id, "Released").await?;
        let mut groups = Vec::new();
        let mut report = lease.report(&mut tx, customer).await?;
        if lease.run.is_stopping() && report.is_pending() {
            let report = std::slice::from_mut(&mut report);
            let canceled = end(&mut tx, customer, &mut lease.run, report, Ending::Canceled).await?;
            settle(&mut tx, customer, &mut lease.run, canceled).await?;
        } else {
            groups = put_back(&mut tx, customer, &lease.place).await?;
        }
        tx.commit().await?;
        for group in groups {
            self.queue.tell(customer, &group).await;
        }
        Ok(())
    }

    /// The instances of a report that have these numbers.
    async fn instances(
        &self,
        customer: CustomerId,
        report: TestReportId,
        numbers: &[i32],
    ) -> Result<Response<Batches<InstanceBatch>>, Status> {
        let entries = instance::store::of_numbers(&self.db, customer, report, numbers).await?;
        let parts: Vec<_> = entries
            .chunks(LISTED)
            .map(|items| Ok(InstanceBatch { items: items.to_vec(), next_cursor: None }))
            .collect();
        Ok(Response::new(stream::iter(parts).boxed()))
    }
}

/// Puts the schedule of a lease that has ended back into the queue. Says which engines are to be
/// told.
async fn put_back(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    place: &Place,
) -> Result<Vec<String>, Fault> {
    let back = schedule::store::put_back(tx, customer, &[place.schedule]).await?;
    let reports: Vec<TestReportId> = back.iter().map(|(report, _)| *report).collect();
    test_report::store::put_down(tx, customer, &reports).await?;
    Ok(back.into_iter().map(|(_, group)| group).collect())
}
