//! Calls about executions of the set.

use assay_proto::execution::{
    CancelExecutionRequest, CompleteExecutionRequest, Execution, ExecutionMode,
    GetExecutionRequest, OpenExecutionInput, OpenExecutionRequest, StartExecutionInput,
    StartExecutionRequest, execution_service_client::ExecutionServiceClient,
};
use assay_rpc::grpc::Channel;
use assay_testkit::TestUser;
use tonic::{Response, Status, Streaming};

use super::World;

impl World {
    pub(crate) fn executions(&self) -> ExecutionServiceClient<Channel> {
        ExecutionServiceClient::new(self.execution.clone())
    }

    /// Returns the request to start the set.
    pub(crate) fn start_request(&self, mode: ExecutionMode) -> StartExecutionRequest {
        let mut input = StartExecutionInput::default();
        input.set_mode(mode);
        StartExecutionRequest {
            project_id: self.project.clone(),
            test_set_id: self.set.clone(),
            execution: Some(input),
            idempotency_key: None,
        }
    }

    /// Starts an external execution of the set.
    pub(crate) async fn start(&self) -> Result<Execution, Status> {
        self.start_by(self.start_request(ExecutionMode::External)).await
    }

    /// Starts an execution of the set that engines run.
    pub(crate) async fn dispatch(&self) -> Result<Execution, Status> {
        self.start_by(self.start_request(ExecutionMode::Dispatch)).await
    }

    pub(crate) async fn start_by(
        &self,
        request: StartExecutionRequest,
    ) -> Result<Execution, Status> {
        collect(self.executions().start_execution(self.user.call(request)).await?).await
    }

    pub(crate) async fn cancel(&self, id: &str) -> Result<(), Status> {
        let request =
            CancelExecutionRequest { project_id: self.project.clone(), id: id.to_owned() };
        self.executions().cancel_execution(self.user.call(request)).await?;
        Ok(())
    }

    pub(crate) async fn execution(&self, id: &str) -> Result<Execution, Status> {
        let request = GetExecutionRequest { project_id: self.project.clone(), id: id.to_owned() };
        collect(self.executions().get_execution(self.user.call(request)).await?).await
    }

    pub(crate) async fn complete(&self, id: &str) -> Result<Execution, Status> {
        self.complete_by(id, None).await
    }

    /// Completes the part of a reporter.
    pub(crate) async fn complete_as(&self, id: &str, reporter: &str) -> Result<Execution, Status> {
        self.complete_by(id, Some(reporter.to_owned())).await
    }

    async fn complete_by(&self, id: &str, reporter: Option<String>) -> Result<Execution, Status> {
        let (project_id, id) = (self.project.clone(), id.to_owned());
        let request = CompleteExecutionRequest { project_id, id, reporter };
        collect(self.executions().complete_execution(self.user.call(request)).await?).await
    }

    /// Opens an execution, or joins one.
    pub(crate) async fn open(&self, input: OpenExecutionInput) -> Result<Execution, Status> {
        self.open_as(&self.user, input).await
    }

    pub(crate) async fn open_as(
        &self,
        user: &TestUser,
        input: OpenExecutionInput,
    ) -> Result<Execution, Status> {
        let request = OpenExecutionRequest { execution: Some(input), ..Default::default() };
        collect(self.executions().open_execution(user.call(request)).await?).await
    }
}

/// Joins the parts of a streamed execution.
pub(super) async fn collect(parts: Response<Streaming<Execution>>) -> Result<Execution, Status> {
    let mut parts = parts.into_inner();
    let mut execution = parts.message().await?.expect("a first part");
    while let Some(part) = parts.message().await? {
        execution.test_reports.extend(part.test_reports);
    }
    Ok(execution)
}
