//! The gRPC service of engines.

use std::time::Duration;

use assay_auth::{Caller, Seal};
use assay_database::begin;
use assay_ledger::{instance, lease, settle::add_results, time_limits::TimeLimits};
use assay_proto::{
    Batch as _, CustomerId, Fault, LeaseId, TestReportId,
    execution::{
        CompleteLeaseRequest, GetLeasedRecordsRequest, InstanceBatch, Lease, LeaseBatch,
        LeaseSchedulesRequest, LeaseState, LeasedRecords, ReleaseLeaseRequest, RenewLeaseRequest,
        ReportInstancesRequest, automation_service_server,
    },
};
use assay_records::{Check, appliances};
use assay_rpc::{
    body::{Body, Memory, open},
    list::Batches,
};
use futures::{StreamExt, stream};
use sqlx::PgPool;
use tonic::{Request, Response, Status, Streaming};

use super::{
    dequeue,
    end::{self, LockedLease},
    hand_over,
    records::AutomationRecords,
    renew::Renewal,
    rules,
};
use crate::{
    catalog::Catalog,
    limits::IngestLimits,
    pool,
    queue::Queue,
    result::{
        json::{self, Source},
        resolve::to_report,
    },
};

/// Number of instances in one message of a list.
const LISTED: usize = 1000;

/// The gRPC service of engines.
pub(crate) struct AutomationService {
    pub(crate) db: PgPool,
    pub(crate) catalog: Catalog,
    pub(crate) queue: Queue,
    pub(crate) settings: TimeLimits,
    pub(crate) limits: IngestLimits,
    /// Encrypts the secrets of pools.
    pub(crate) seal: Seal,
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
        let (db, customer) = (&self.db, caller.customer);
        let input = request.into_inner().lease.unwrap_or_default();
        let input = rules::with_defaults(&caller, input)?;
        let allowed = appliances::check(db, customer, input.target_group());
        self.limits.read(customer, allowed).await?;
        self.queue.note_engine(customer, &input);
        let wait = Duration::from_secs(input.wait_in_sec().unsigned_abs().into());
        let dequeue = || dequeue::dequeue(db, self.settings, &caller, &input);
        let poll = || self.limits.read(customer, dequeue());
        let found = self.queue.wait(customer, rules::offered(&input), wait, poll).await?;
        let Some(mut leases) = found else { return Ok(Response::new(stream::empty().boxed())) };
        let marked = dequeue::mark_running(db, customer, &leases);
        if let Err(fault) = self.limits.read(customer, marked).await {
            tracing::warn!(error = %fault, "an execution was not marked as running");
        }
        match self.read_records(&caller, &mut leases).await {
            Ok(records) => Ok(hand_over::response(leases, records)),
            Err(status) => {
                hand_over::give_back(db, &self.queue, customer, &leases).await;
                Err(status)
            }
        }
    }

    async fn renew_lease(
        &self,
        request: Request<RenewLeaseRequest>,
    ) -> Result<Response<LeaseState>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let id = LeaseId::from_path(&request.id)?;
        let wait = rules::wait_for_stop(request.renewal.unwrap_or_default(), self.settings)?;
        let renewal = Renewal {
            db: &self.db,
            limits: &self.limits,
            queue: &self.queue,
            duration: self.settings.lease(),
        };
        Ok(Response::new(renewal.renew_within(customer, id, wait).await?))
    }

    async fn report_instances(
        &self,
        request: Request<Streaming<ReportInstancesRequest>>,
    ) -> Result<Response<Self::ReportInstancesStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let (id, pieces) = open(request.into_inner()).await?;
        let id = LeaseId::from_path(&id)?;
        // Fail before the engine sends megabytes in vain.
        let schedule = lease::store::schedule_of(&self.db, customer, id);
        let schedule = self.limits.read(customer, schedule).await?;

        let parse =
            |body: Body, memory: &mut Memory| json::read(body.into_file(), Source::Engine, memory);
        let (results, memory) = self.limits.intake.read(customer, pieces, parse).await?;
        let writer = self.limits.write(customer, schedule.execution_id.0).await?;
        let mut tx = begin(&self.db).await?;
        let mut lease = LockedLease::lock(&mut tx, customer, id).await?;
        let mut reports = [lease.report(&mut tx, customer).await?];
        let results = to_report(results, &reports[0])?;
        let numbers: Vec<i32> = results.iter().filter_map(|result| result.slot.number()).collect();
        let execution = &mut lease.execution;
        let added = add_results(&mut tx, customer, execution, &mut reports, results, false).await?;
        if added > 0 && reports[0].is_pending() {
            let patience = self.settings.patience(schedule.maximum_duration_in_min);
            lease::silence::prolong(&mut tx, customer, id, patience).await?;
        }
        let stops = lease.execution.is_stopping();
        tx.commit().await.map_err(Fault::from)?;
        drop((writer, memory));
        if stops {
            self.queue.stop(customer, schedule.execution_id).await;
        }
        self.list_instances(customer, schedule.test_report_id, &numbers).await
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
        end::complete(&self.db, &self.queue, customer, id, &input).await?;
        Ok(Response::new(()))
    }

    async fn release_lease(
        &self,
        request: Request<ReleaseLeaseRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let id = LeaseId::from_path(&request.get_ref().id)?;
        end::release(&self.db, &self.queue, customer, id).await?;
        Ok(Response::new(()))
    }

    async fn get_leased_records(
        &self,
        request: Request<GetLeasedRecordsRequest>,
    ) -> Result<Response<LeasedRecords>, Status> {
        let customer = Caller::of(&request)?.customer;
        let id = LeaseId::from_path(&request.get_ref().id)?;
        let record_ids = lease::records::held(&self.db, customer, id).await?;
        Ok(Response::new(LeasedRecords { record_ids }))
    }
}

impl AutomationService {
    /// Reads the records that an engine needs for its leases, and the values of pools that they have taken.
    async fn read_records(
        &self,
        caller: &Caller,
        leases: &mut Vec<Lease>,
    ) -> Result<AutomationRecords, Status> {
        let (db, customer) = (&self.db, caller.customer);
        let records =
            hand_over::read_records(db, &self.queue, &self.catalog, caller, leases).await?;
        if !records.name_pools() {
            return Ok(records);
        }
        let taken = pool::taken(db, &self.seal, customer, leases);
        let taken = self.limits.read(customer, taken).await?;
        hand_over::leave_out(db, &self.queue, customer, leases, &taken).await?;
        Ok(records.with_values(taken.values))
    }

    /// Lists the instances of a report that have these numbers.
    async fn list_instances(
        &self,
        customer: CustomerId,
        report: TestReportId,
        numbers: &[i32],
    ) -> Result<Response<Batches<InstanceBatch>>, Status> {
        let entries = instance::store::of_numbers(&self.db, customer, report, numbers).await?;
        let parts: Vec<_> =
            entries.chunks(LISTED).map(|items| Ok(InstanceBatch::render(items, None)?)).collect();
        Ok(Response::new(stream::iter(parts).boxed()))
    }
}
