//! The gRPC service of live logs.

use assay_auth::Caller;
use assay_database::begin;
use assay_ledger::lease;
use assay_proto::{
    CustomerId, ExecutionId, Fault, LeaseId, ProjectId, TestReportId,
    execution::{
        AppendLiveLogRequest, GetLiveLogRequest, LiveLog, LiveLogState, live_log_service_server,
    },
};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use super::{
    rules::{self, LARGEST_LOG},
    store::{self, LatestLog},
};
use crate::{limits::IngestLimits, queue::Queue, quota::Kind};

/// The gRPC service of live logs.
pub(crate) struct LiveLogService {
    pub(crate) db: PgPool,
    pub(crate) queue: Queue,
    pub(crate) limits: IngestLimits,
}

#[tonic::async_trait]
impl live_log_service_server::LiveLogService for LiveLogService {
    async fn append_live_log(
        &self,
        request: Request<AppendLiveLogRequest>,
    ) -> Result<Response<LiveLogState>, Status> {
        let customer = Caller::of(&request)?.customer;
        let AppendLiveLogRequest { lease_id, log } = request.into_inner();
        let id = LeaseId::from_path(&lease_id)?;
        let input = rules::valid(log.unwrap_or_default())?;
        let schedule = lease::store::schedule_of(&self.db, customer, id).await?;
        self.limits.quota.claim(customer, Kind::Artifacts, input.text.len()).await?;

        let mut tx = begin(&self.db).await?;
        let size = store::lock(&mut tx, customer, id, &schedule).await?;
        // After the lock: a log is removed only if its lease has ended.
        lease::store::check_held(&mut *tx, customer, id).await?;
        let new = rules::missing(&input, size)?;
        if !new.is_empty() {
            store::append(&mut tx, customer, id, size, new).await?;
        }
        tx.commit().await.map_err(Fault::from)?;
        let size = size + i64::try_from(new.len()).map_err(Fault::internal)?;
        self.queue.log(customer, schedule.test_report_id).await;
        Ok(Response::new(LiveLogState { size, is_full: size >= LARGEST_LOG }))
    }

    async fn get_live_log(
        &self,
        request: Request<GetLiveLogRequest>,
    ) -> Result<Response<LiveLog>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let position = Position {
            customer,
            project: ProjectId::from_path_if_any(request.project_id.as_deref())?,
            execution: ExecutionId::from_path(&request.execution_id)?,
            report: TestReportId::from_path(&request.test_report_id)?,
            lease: LeaseId::from_field_if_any("leaseId", request.lease_id.as_deref())?,
            offset: request.offset.unwrap_or_default(),
        };
        let wait = rules::wait(request.wait_in_sec)?;
        let poll = || self.limits.read(customer, self.news(&position));
        let news = self.queue.wait_for_log(customer, position.report, wait, poll).await?;
        let log = match news {
            Some(log) => log,
            None => self.limits.read(customer, self.read(&position)).await?,
        };
        Ok(Response::new(log))
    }
}

/// A position in the latest log of a test report.
struct Position {
    customer: CustomerId,
    project: Option<ProjectId>,
    execution: ExecutionId,
    report: TestReportId,
    /// Lease that the offset belongs to; none for that of the latest log.
    lease: Option<LeaseId>,
    offset: i64,
}

impl LiveLogService {
    /// Reads the log if it has text at a position, or can have no more.
    async fn news(&self, position: &Position) -> Result<Option<LiveLog>, Fault> {
        let log = self.read(position).await?;
        Ok((!log.text.is_empty() || !log.is_running).then_some(log))
    }

    async fn read(&self, position: &Position) -> Result<LiveLog, Fault> {
        let Position { customer, project, execution, report, lease, offset } = *position;
        let is_pending = store::is_pending(&self.db, customer, project, execution, report).await?;
        let latest = store::latest(&self.db, customer, report, lease).await?;
        let Some(LatestLog { lease_id, engine, size, is_held }) = latest else {
            return Ok(LiveLog { is_running: is_pending, ..LiveLog::default() });
        };
        let is_other = lease.is_some_and(|lease| lease != lease_id);
        let offset = match offset {
            _ if is_other => 0,
            from_end @ ..0 => (size + from_end).max(0),
            offset => offset.min(size),
        };
        let piece = store::read(&self.db, customer, lease_id, offset).await?;
        let (left_out, length, text) = rules::text(&piece);
        let offset = offset + i64::try_from(left_out).map_err(Fault::internal)?;
        let next_offset = offset + i64::try_from(length).map_err(Fault::internal)?;
        let has_more = !text.is_empty() && next_offset < size;
        let is_running = is_pending || is_held || has_more;
        Ok(LiveLog {
            lease_id: Some(lease_id.to_string()),
            engine,
            offset,
            next_offset,
            text,
            is_running,
        })
    }
}
