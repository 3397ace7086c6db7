//! The gRPC service of engines and queues.

use assay_auth::Caller;
use assay_ledger::{
    schedule::{self, queue::QueuePart},
    time_limits::TimeLimits,
};
use assay_proto::{
    CustomerId, Fault, ProjectId, Timestamp,
    execution::{
        EngineBatch, GetQueueLengthRequest, ListEnginesRequest, ListQueuesRequest, Queue,
        QueueLength, Queues, engine_service_server,
    },
};
use assay_records::Check;
use assay_rpc::list::{Batches, answer};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use super::store;
use crate::restriction;

/// The gRPC service of engines and queues.
pub(crate) struct EngineService {
    pub(crate) db: PgPool,
    pub(crate) settings: TimeLimits,
}

#[tonic::async_trait]
impl engine_service_server::EngineService for EngineService {
    type ListEnginesStream = Batches<EngineBatch>;

    async fn list_engines(
        &self,
        request: Request<ListEnginesRequest>,
    ) -> Result<Response<Self::ListEnginesStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let (db, lease) = (self.db.clone(), self.settings.lease());
        answer(request.into_inner().page, move |slice| {
            let db = db.clone();
            async move { store::list(&db, customer, lease, &slice).await }
        })
        .await
    }

    async fn get_queue_length(
        &self,
        request: Request<GetQueueLengthRequest>,
    ) -> Result<Response<QueueLength>, Status> {
        let customer = Caller::of(&request)?.customer;
        let GetQueueLengthRequest { target_group, labels, project_ids } = request.into_inner();
        let mut check = Check::default();
        check.labels("labels", &labels);
        let projects = restriction::check(&mut check, "projectIds", &project_ids);
        check.done()?;
        let mut offered = labels;
        offered.push(target_group.unwrap_or_default());
        Ok(Response::new(self.length(customer, &offered, &projects).await?))
    }

    async fn list_queues(
        &self,
        request: Request<ListQueuesRequest>,
    ) -> Result<Response<Queues>, Status> {
        let customer = Caller::of(&request)?.customer;
        let parts = schedule::store::parts(&self.db, customer, &[], &[]).await?;
        let lengths = store::lengths(&self.db, customer, &parts).await?;
        let ids = parts.iter().flat_map(|part| part.queue.pools()).collect();
        let pools = store::pools(&self.db, customer, ids).await?;
        let queue = |(part, (queued, since)): (&QueuePart, (i64, Option<Timestamp>))| {
            let name = &part.queue;
            let pools = name.pools().into_iter().filter_map(|pool| pools.get(&pool).cloned());
            Some(Queue {
                labels: name.labels().map(str::to_owned).collect(),
                environment_id: name.exclusive().map(|id| id.to_string()),
                queued: count(queued),
                // Empty if its work was leased meanwhile.
                queued_since: Some(since?),
                pools: pools.collect(),
            })
        };
        let items = parts.iter().zip(lengths).filter_map(queue).collect();
        Ok(Response::new(Queues { items }))
    }
}

impl EngineService {
    /// Returns the work of engines that offer these labels, in these projects or in all if there are none.
    async fn length(
        &self,
        customer: CustomerId,
        offered: &[String],
        projects: &[ProjectId],
    ) -> Result<QueueLength, Fault> {
        let mut parts = schedule::store::parts(&self.db, customer, offered, projects).await?;
        parts.retain(|part| part.queue.is_served_by(offered));
        let lengths = store::lengths(&self.db, customer, &parts).await?;
        let running = store::running(&self.db, customer, projects).await?;
        let running = running.iter().filter(|(queue, _)| queue.is_served_by(offered));
        let running = count(running.map(|(_, count)| count).sum());
        let waiting = count(lengths.iter().map(|(waiting, _)| waiting).sum());
        Ok(QueueLength {
            queued: waiting,
            running,
            total: waiting.saturating_add(running),
            queued_since: lengths.into_iter().filter_map(|(_, since)| since).min(),
        })
    }
}

fn count(count: i64) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
