//! Calls of the catalog service on behalf of a caller.

use std::{future::Future, iter, time::Duration};

use assay_auth::Caller;
use assay_proto::{
    CustomerId, Fault,
    catalog::{
        AdoptTestCasesRequest, AutomationRecordsBatch, FindIdentifiersRequest, FindRecordsRequest,
        FindTestSetRequest, Gate, GetAutomationRecordsRequest, GetGateRequest,
        GetMetricsSettingsRequest, GetTestCaseNameRequest, MetricsSettings, ReportedTestCase,
        Snapshot, SnapshotTarget, TakeSnapshotRequest, TestCaseName,
        automation_service_client::AutomationServiceClient,
        lookup_service_client::LookupServiceClient, snapshot_service_client::SnapshotServiceClient,
    },
};
use assay_rpc::{
    body::{Intake, Memory},
    grpc::{Channel, MESSAGE_LIMIT},
    parts::{PART, split},
};
use futures::{TryStreamExt, stream};
use prost::Message;
use tonic::{Status, Streaming};

/// Time limit for finding a record.
const FIND: Duration = Duration::from_secs(3);

/// Time limit for reading the records that engines need.
const READ: Duration = Duration::from_secs(10);

/// Time limit for copying a large test set.
const COPY: Duration = Duration::from_mins(1);

/// Maximum size of the copy of a test set, in bytes. The catalog has the same limit.
const LARGEST: usize = 64 << 20;

/// A client of the catalog service.
#[derive(Clone)]
pub(crate) struct Catalog(Channel);

impl Catalog {
    pub(crate) fn new(channel: Channel) -> Self {
        Self(channel)
    }

    /// Fails unless the project exists and has these records.
    pub(crate) async fn find(
        &self,
        caller: &Caller,
        records: FindRecordsRequest,
    ) -> Result<(), Status> {
        let mut lookup = LookupServiceClient::new(self.0.clone());
        within(FIND, lookup.find_records(caller.call_within(FIND, records))).await?;
        Ok(())
    }

    /// Returns those of these identifiers and aliases that active test cases of a project have.
    pub(crate) async fn find_identifiers(
        &self,
        caller: &Caller,
        project_id: String,
        identifiers: Vec<String>,
    ) -> Result<Vec<String>, Status> {
        let mut lookup = LookupServiceClient::new(self.0.clone());
        let request = FindIdentifiersRequest { project_id, identifiers };
        let found = lookup.find_identifiers(caller.call_within(READ, request));
        Ok(within(READ, found).await?.into_inner().identifiers)
    }

    /// Returns the identifier and the name of a test case.
    pub(crate) async fn test_case_name(
        &self,
        caller: &Caller,
        project_id: String,
        id: String,
    ) -> Result<TestCaseName, Status> {
        let mut lookup = LookupServiceClient::new(self.0.clone());
        let request = caller.call_within(FIND, GetTestCaseNameRequest { project_id, id });
        Ok(within(FIND, lookup.get_test_case_name(request)).await?.into_inner())
    }

    /// Returns the settings of a project for its metrics.
    pub(crate) async fn metrics_settings(
        &self,
        caller: &Caller,
        project_id: String,
    ) -> Result<MetricsSettings, Status> {
        let mut lookup = LookupServiceClient::new(self.0.clone());
        let request = caller.call_within(FIND, GetMetricsSettingsRequest { project_id });
        Ok(within(FIND, lookup.get_metrics_settings(request)).await?.into_inner())
    }

    /// Returns the rules of a test set, or those that would replace them.
    pub(crate) async fn gate(
        &self,
        caller: &Caller,
        request: GetGateRequest,
    ) -> Result<Gate, Status> {
        let mut lookup = LookupServiceClient::new(self.0.clone());
        let request = caller.call_within(FIND, request);
        Ok(within(FIND, lookup.get_gate(request)).await?.into_inner())
    }

    /// Returns the project and the test set with these names or ids. Creates those that are missing
    /// if the caller may write.
    pub(crate) async fn find_test_set(
        &self,
        caller: &Caller,
        names: FindTestSetRequest,
    ) -> Result<SnapshotTarget, Status> {
        let mut snapshots = SnapshotServiceClient::new(self.0.clone());
        let found = snapshots.find_test_set(caller.call_within(READ, names));
        Ok(within(READ, found).await?.into_inner())
    }

    /// Copies a test set in its current state.
    pub(crate) async fn take_snapshot(
        &self,
        caller: &Caller,
        request: TakeSnapshotRequest,
        intake: &Intake,
    ) -> Result<(Snapshot, Memory), Status> {
        let mut snapshots = SnapshotServiceClient::new(self.0.clone());
        within(COPY, async {
            let parts = snapshots.take_snapshot(caller.call_within(COPY, request)).await?;
            collect(parts.into_inner(), caller.customer, intake).await
        })
        .await
    }

    /// Reads the plans, subjects and environments that engines need, with secrets in clear text.
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

    /// Copies the test cases with the identifiers of `cases`, in the same order. Creates missing
    /// ones.
    pub(crate) async fn adopt(
        &self,
        caller: &Caller,
        target: SnapshotTarget,
        cases: Vec<ReportedTestCase>,
        intake: &Intake,
    ) -> Result<(Snapshot, Memory), Status> {
        let first = AdoptTestCasesRequest { target: Some(target), ..Default::default() };
        let part = |test_cases| AdoptTestCasesRequest { test_cases, ..Default::default() };
        let parts = split(cases, PART, Message::encoded_len).into_iter().map(part);
        let last = AdoptTestCasesRequest { last: true, ..Default::default() };
        let messages: Vec<_> = iter::once(first).chain(parts).chain([last]).collect();
        let mut snapshots = SnapshotServiceClient::new(self.0.clone());
        within(COPY, async {
            let request = caller.call_within(COPY, stream::iter(messages));
            let parts = snapshots.adopt_test_cases(request).await?.into_inner();
            collect(parts, caller.customer, intake).await
        })
        .await
    }
}

/// Collects the parts of a snapshot. Only the first part has more than test cases. Snapshots share
/// the memory limit of bodies.
async fn collect(
    mut parts: Streaming<Snapshot>,
    customer: CustomerId,
    intake: &Intake,
) -> Result<(Snapshot, Memory), Status> {
    let no_answer = || Status::unavailable("the catalog is not available; try again later");
    let mut snapshot = parts.message().await?.ok_or_else(no_answer)?;
    let mut size = snapshot.encoded_len();
    let mut memory = intake.reserve(customer, size).await?;
    while let Some(part) = parts.message().await? {
        let length = part.encoded_len();
        size += length;
        if size > LARGEST {
            return Err(too_large().into());
        }
        memory.add(intake.reserve(customer, length).await?);
        snapshot.test_cases.extend(part.test_cases);
    }
    Ok((snapshot, memory))
}

fn too_large() -> Fault {
    let reason = format!("the plans of the set have more than {} MiB of variables", LARGEST >> 20);
    Fault::Refused { code: "execution_too_large", reason }
}

/// Enforces a deadline, even if the catalog does not.
async fn within<T>(
    deadline: Duration,
    call: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    let late = || Status::deadline_exceeded("the catalog did not answer in time");
    tokio::time::timeout(deadline, call).await.unwrap_or_else(|_| Err(late()))
}
