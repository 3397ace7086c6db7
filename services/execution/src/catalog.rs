//! What the catalog is asked, on behalf of a caller.

use std::{future::Future, time::Duration};

use assay_auth::Caller;
use assay_proto::catalog::{
    AdoptTestCasesRequest, AutomationRecordsBatch, FindRecordsRequest, GetAutomationRecordsRequest,
    ReportedTestCase, Snapshot, TakeSnapshotRequest,
    automation_service_client::AutomationServiceClient, lookup_service_client::LookupServiceClient,
    snapshot_service_client::SnapshotServiceClient,
};
use assay_runtime::grpc::{Channel, MESSAGE_LIMIT};
use futures::{TryStreamExt, stream};
use tonic::{Status, Streaming};

/// How long a look at a record may take.
const LOOK: Duration = Duration::from_secs(3);

/// How long records may take that engines need.
const READ: Duration = Duration::from_secs(10);

/// How long the copy of a large test set may take.
const COPY: Duration = Duration::from_mins(1);

/// How many test cases travel in one message.
const CASES_IN_MESSAGE: usize = 500;

/// The catalog service.
#[derive(Clone)]
pub(crate) struct Catalog(Channel);

impl Catalog {
    pub(crate) fn new(channel: Channel) -> Self {
        Self(channel)
    }

    /// Fails unless the project is there and has these records.
    pub(crate) async fn find(
        &self,
        caller: &Caller,
        records: FindRecordsRequest,
    ) -> Result<(), Status> {
        let mut lookup = LookupServiceClient::new(self.0.clone());
        within(LOOK, lookup.find_records(caller.call_within(LOOK, records))).await?;
        Ok(())
    }

    /// Copies a test set as it is now.
    pub(crate) async fn take_snapshot(
        &self,
        caller: &Caller,
        request: TakeSnapshotRequest,
    ) -> Result<Snapshot, Status> {
        let mut snapshots = SnapshotServiceClient::new(self.0.clone());
        within(COPY, async {
            let parts = snapshots.take_snapshot(caller.call_within(COPY, request)).await?;
            collect(parts.into_inner()).await
        })
        .await
    }

    /// What engines need to know of plans, subjects and environments; in clear.
    pub(crate) async fn automation_records(
        &self,
        caller: &Caller,
        request: GetAutomationRecordsRequest,
    ) -> Result<Vec<AutomationRecordsBatch>, Status> {
        let mut automation =
            AutomationServiceClient::new(self.0.clone()).max_decoding_message_size(MESSAGE_LIMIT);
        within(READ, async {
            let request = caller.call_within(READ, request);
            automation.get_automation_records(request).await?.into_inner().try_collect().await
        })
        .await
    }

    /// Copies the test cases with the identifiers of `cases`, in their order; new ones are made.
    pub(crate) async fn adopt(
        &self,
        caller: &Caller,
        target: TakeSnapshotRequest,
        cases: Vec<ReportedTestCase>,
    ) -> Result<Snapshot, Status> {
        let mut target = Some(target);
        let parts = cases.chunks(CASES_IN_MESSAGE).map(|part| AdoptTestCasesRequest {
            target: target.take(),
            test_cases: part.to_vec(),
            last: false,
        });
        let end = AdoptTestCasesRequest { last: true, ..AdoptTestCasesRequest::default() };
        let messages: Vec<_> = parts.chain([end]).collect();
        let mut snapshots = SnapshotServiceClient::new(self.0.clone());
        within(COPY, async {
            let request = caller.call_within(COPY, stream::iter(messages));
            collect(snapshots.adopt_test_cases(request).await?.into_inner()).await
        })
        .await
    }
}

/// Puts a snapshot together: only its first part has more than test cases.
async fn collect(mut parts: Streaming<Snapshot>) -> Result<Snapshot, Status> {
    let no_answer = || Status::unavailable("the catalog is not available; try again later");
    let mut snapshot = parts.message().await?.ok_or_else(no_answer)?;
    while let Some(part) = parts.message().await? {
        snapshot.test_cases.extend(part.test_cases);
    }
    Ok(snapshot)
}

/// A deadline that holds even if the catalog does not keep it.
async fn within<T>(
    deadline: Duration,
    call: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    let late = || Status::deadline_exceeded("the catalog did not answer in time");
    tokio::time::timeout(deadline, call).await.unwrap_or_else(|_| Err(late()))
}
