//! Calls about reports and their instances.

use assay_proto::{
    Batch as _,
    execution::{
        GetInstanceRequest, GetTestReportRequest, InstanceEntry, ListInstancesRequest, TestReport,
        test_report_service_client::TestReportServiceClient,
    },
};
use assay_rpc::grpc::Channel;
use futures::TryStreamExt;
use tonic::Status;

use super::World;

impl World {
    pub(crate) fn reports(&self) -> TestReportServiceClient<Channel> {
        TestReportServiceClient::new(self.execution.clone())
    }

    pub(crate) async fn test_report(&self, id: &str) -> Result<TestReport, Status> {
        let request = GetTestReportRequest { id: id.to_owned(), ..GetTestReportRequest::default() };
        Ok(self.reports().get_test_report(self.user.call(request)).await?.into_inner())
    }

    pub(crate) async fn instances(
        &self,
        report: &TestReport,
    ) -> Result<Vec<InstanceEntry>, Status> {
        let request = ListInstancesRequest {
            project_id: self.project.clone(),
            test_case_id: report.test_case_id.clone(),
            test_plan_id: report.test_plan_id.clone(),
            test_report_id: report.id.clone(),
            page: None,
        };
        let batches = self.reports().list_instances(self.user.call(request)).await?.into_inner();
        let batches: Vec<_> = batches.try_collect().await?;
        Ok(batches.into_iter().flat_map(|batch| batch.parse().unwrap()).collect())
    }

    /// Returns the request for an instance, with all ids of its path.
    pub(crate) fn instance_path(&self, report: &TestReport, id: &str) -> GetInstanceRequest {
        GetInstanceRequest {
            project_id: self.project.clone(),
            test_case_id: report.test_case_id.clone(),
            test_plan_id: report.test_plan_id.clone(),
            test_report_id: report.id.clone(),
            id: id.to_owned(),
        }
    }
}
