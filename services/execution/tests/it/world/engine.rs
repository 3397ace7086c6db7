//! Calls of engines.

use assay_proto::{
    Batch as _,
    execution::{
        CompleteLeaseInput, CompleteLeaseRequest, InstanceEntry, Lease, LeaseInput,
        LeaseSchedulesRequest, LeaseState, ReleaseLeaseRequest, RenewLeaseInput, RenewLeaseRequest,
        ReportInstancesRequest, automation_service_client::AutomationServiceClient,
    },
};
use assay_rpc::grpc::Channel;
use assay_testkit::TestUser;
use futures::{TryStreamExt, stream};
use serde_json::{Value, json};
use tonic::Status;

use crate::world::World;

/// An engine of one user, at one server.
#[derive(Clone)]
pub(crate) struct Engine {
    user: TestUser,
    client: AutomationServiceClient<Channel>,
}

/// Returns a request for up to `max` schedules of a target group, without waiting.
pub(crate) fn now(group: &str, max: i32) -> LeaseInput {
    LeaseInput {
        target_group: Some(group.to_owned()),
        max_schedules: Some(max),
        ..LeaseInput::default()
    }
}

/// Returns an instance with this result.
pub(crate) fn instance(nr: i32, result: &str) -> Value {
    json!({ "InstanceNr": nr, "Result": result, "DurationInSec": 0.5 })
}

impl World {
    /// Returns an engine of the customer.
    pub(crate) fn engine(&self) -> Engine {
        self.engine_of(&self.user)
    }

    pub(crate) fn engine_of(&self, user: &TestUser) -> Engine {
        Engine { user: user.clone(), client: AutomationServiceClient::new(self.execution.clone()) }
    }
}

impl Engine {
    /// Returns this engine with a connection to another server.
    pub(crate) fn at(&self, channel: Channel) -> Self {
        Self { client: AutomationServiceClient::new(channel), ..self.clone() }
    }

    pub(crate) async fn lease(&self, lease: LeaseInput) -> Result<Vec<Lease>, Status> {
        let request = LeaseSchedulesRequest { lease: Some(lease) };
        let request = self.user.caller.call_within(std::time::Duration::from_secs(40), request);
        let batches = self.client.clone().lease_schedules(request).await?.into_inner();
        let batches: Vec<_> = batches.try_collect().await?;
        Ok(batches.into_iter().flat_map(|batch| batch.parse().unwrap()).collect())
    }

    /// Leases one schedule that needs no target group.
    pub(crate) async fn lease_one(&self) -> Result<Lease, Status> {
        let leases = self.lease(LeaseInput::default()).await?;
        leases.into_iter().next().ok_or_else(|| Status::not_found("no work"))
    }

    pub(crate) async fn renew(&self, id: &str) -> Result<LeaseState, Status> {
        self.renew_within(id, 0).await
    }

    /// Renews a lease, and waits for up to this number of seconds until the engine should stop.
    pub(crate) async fn renew_within(&self, id: &str, wait: i32) -> Result<LeaseState, Status> {
        let renewal = Some(RenewLeaseInput { wait_in_sec: Some(wait) });
        let request = RenewLeaseRequest { id: id.to_owned(), renewal };
        let limit = std::time::Duration::from_secs(40);
        let request = self.user.caller.call_within(limit, request);
        Ok(self.client.clone().renew_lease(request).await?.into_inner())
    }

    pub(crate) async fn report(
        &self,
        id: &str,
        instances: Value,
    ) -> Result<Vec<InstanceEntry>, Status> {
        let message = ReportInstancesRequest {
            id: Some(id.to_owned()),
            chunk: instances.to_string().into(),
            last: true,
        };
        let request = self.user.call(stream::iter([message]));
        let batches = self.client.clone().report_instances(request).await?.into_inner();
        let batches: Vec<_> = batches.try_collect().await?;
        Ok(batches.into_iter().flat_map(|batch| batch.parse().unwrap()).collect())
    }

    pub(crate) async fn complete(&self, id: &str, failure: bool) -> Result<(), Status> {
        let comment = failure.then(|| "The browser did not start".to_owned());
        let completion = CompleteLeaseInput { comment, engine_failure: failure };
        let request = CompleteLeaseRequest { id: id.to_owned(), completion: Some(completion) };
        self.client.clone().complete_lease(self.user.call(request)).await?;
        Ok(())
    }

    pub(crate) async fn release(&self, id: &str) -> Result<(), Status> {
        let request = self.user.call(ReleaseLeaseRequest { id: id.to_owned() });
        self.client.clone().release_lease(request).await?;
        Ok(())
    }
}
