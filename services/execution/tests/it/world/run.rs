//! Runs, reported as clients of TestRail do.

use assay_proto::execution::{
    AddRunAttachmentRequest, AddRunAttachmentTarget, AddRunResultsRequest, AddRunResultsTarget,
    AddedRunResult, AssignNumbersRequest, FindNumbersRequest, FormFile, NumberedKind,
    NumberedRecord, OpenExecutionInput, OpenExecutionRequest, run_service_client::RunServiceClient,
};
use assay_rpc::grpc::Channel;
use assay_testkit::TestUser;
use futures::stream;
use serde_json::Value;
use tonic::Status;

use super::World;

impl World {
    pub(crate) fn runs(&self) -> RunServiceClient<Channel> {
        RunServiceClient::new(self.execution.clone())
    }

    /// Returns the numbers of records of the project, each with its key.
    pub(crate) async fn numbers(
        &self,
        kind: NumberedKind,
        keys: &[&str],
    ) -> Result<Vec<i64>, Status> {
        let record = |key: &&str| NumberedRecord {
            scope_id: self.project.clone(),
            key: (*key).to_owned(),
            ..NumberedRecord::default()
        };
        let records = keys.iter().map(record).collect();
        self.assign(kind, records).await
    }

    async fn assign(
        &self,
        kind: NumberedKind,
        records: Vec<NumberedRecord>,
    ) -> Result<Vec<i64>, Status> {
        let request = AssignNumbersRequest {
            project_id: Some(self.project.clone()),
            kind: kind.into(),
            records,
            with_details: false,
        };
        let assigned = self.runs().assign_numbers(self.user.call(request)).await?.into_inner();
        Ok(assigned.records.into_iter().map(|record| record.number).collect())
    }

    /// Returns the records that a user finds by their numbers.
    pub(crate) async fn records(
        &self,
        user: &TestUser,
        kind: NumberedKind,
        numbers: Vec<i64>,
    ) -> Result<Vec<NumberedRecord>, Status> {
        let request = FindNumbersRequest { kind: kind.into(), numbers };
        Ok(self.runs().find_numbers(user.call(request)).await?.into_inner().records)
    }

    /// Opens a run with these details. Returns its number and its execution.
    pub(crate) async fn open_run(&self, details: &Value) -> Result<(i64, String), Status> {
        let input = OpenExecutionInput {
            project: self.project.clone(),
            test_set: "Nightly".to_owned(),
            ..OpenExecutionInput::default()
        };
        let request =
            OpenExecutionRequest { execution: Some(input), ..OpenExecutionRequest::default() };
        let mut opened =
            self.executions().open_execution(self.user.call(request)).await?.into_inner();
        let execution = opened.message().await?.unwrap_or_default().id;
        let run = NumberedRecord {
            number: 0,
            scope_id: execution.clone(),
            key: self.project.clone(),
            details: details.to_string(),
        };
        Ok((self.assign(NumberedKind::Run, vec![run]).await?[0], execution))
    }

    /// Adds results to a run.
    pub(crate) async fn add_run_results(
        &self,
        run: i64,
        results: &Value,
    ) -> Result<Vec<AddedRunResult>, Status> {
        self.add_run_results_as(&self.user, run, results).await
    }

    pub(crate) async fn add_run_results_as(
        &self,
        user: &TestUser,
        run: i64,
        results: &Value,
    ) -> Result<Vec<AddedRunResult>, Status> {
        let target = Some(AddRunResultsTarget { run, test_case: None });
        let body = serde_json::json!({ "results": results }).to_string();
        let request = AddRunResultsRequest { target, chunk: body.into(), last: true };
        let added = self.runs().add_run_results(user.call(stream::iter([request]))).await?;
        Ok(added.into_inner().results)
    }

    /// Adds a file to a result, and returns its number.
    pub(crate) async fn attach(
        &self,
        user: &TestUser,
        result: i64,
        name: &str,
        contents: &'static str,
    ) -> Result<i64, Status> {
        let file = FormFile { name: name.to_owned(), ..FormFile::default() };
        let request = AddRunAttachmentRequest {
            target: Some(AddRunAttachmentTarget { result }),
            chunk: contents.into(),
            file: Some(file),
            last: true,
        };
        let added = self.runs().add_run_attachment(user.call(stream::iter([request]))).await?;
        Ok(added.into_inner().number)
    }
}
