//! Test reports: the outcome of one test case in one execution.

pub(crate) mod list;
mod path;
mod review;
mod rules;
pub(crate) mod store;

use assay_auth::Caller;
use assay_proto::{
    Fault, InstanceId, ProjectId, TestCaseId, TestPlanId, TestReportId,
    execution::{
        GetInstanceRequest, GetTestReportRequest, Instance, InstanceBatch, InstanceStatistics,
        ListInstancesRequest, TestReport, UpdateTestReportRequest, test_report_service_server,
    },
};
use assay_records::Change;
use assay_runtime::{
    begin,
    list::{Batches, answer},
};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use self::path::TestReportPath;
use crate::{artifact::Artifacts, instance};

/// The gRPC service of test reports and their instances.
pub(crate) struct TestReportService {
    db: PgPool,
    artifacts: Artifacts,
}

impl TestReportService {
    pub(crate) fn new(db: PgPool, artifacts: Artifacts) -> Self {
        Self { db, artifacts }
    }
}

#[tonic::async_trait]
impl test_report_service_server::TestReportService for TestReportService {
    type ListInstancesStream = Batches<InstanceBatch>;

    async fn get_test_report(
        &self,
        request: Request<GetTestReportRequest>,
    ) -> Result<Response<TestReport>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let path = TestReportPath {
            project: ProjectId::from_path_if_any(request.project_id.as_deref())?,
            test_case: TestCaseId::from_path_if_any(request.test_case_id.as_deref())?,
            test_plan: TestPlanId::from_path_if_any(request.test_plan_id.as_deref())?,
            id: TestReportId::from_path(&request.id)?,
        };
        Ok(Response::new(store::get(&self.db, caller.customer, path).await?))
    }

    async fn update_test_report(
        &self,
        request: Request<UpdateTestReportRequest>,
    ) -> Result<Response<TestReport>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let path = TestReportPath::parse(
            &request.project_id,
            &request.test_case_id,
            &request.test_plan_id,
            &request.id,
        )?;
        let UpdateTestReportRequest { data_version, changes, fields, .. } = request;
        let change = Change { data_version, changes, fields };

        let mut tx = begin(&self.db).await?;
        let report = review::review(&mut tx, &caller, path, change).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(report))
    }

    async fn list_instances(
        &self,
        request: Request<ListInstancesRequest>,
    ) -> Result<Response<Self::ListInstancesStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let report = TestReportPath::parse(
            &request.project_id,
            &request.test_case_id,
            &request.test_plan_id,
            &request.test_report_id,
        )?;
        store::check_exists(&self.db, customer, report).await?;
        let db = self.db.clone();
        answer(request.page, move |slice| {
            let db = db.clone();
            async move { instance::list(&db, customer, report.id, &slice).await }
        })
        .await
    }

    async fn get_instance(
        &self,
        request: Request<GetInstanceRequest>,
    ) -> Result<Response<Instance>, Status> {
        let customer = Caller::of(&request)?.customer;
        let (report, id) = instance_path(request.get_ref())?;
        store::check_exists(&self.db, customer, report).await?;
        let mut instance = instance::details(&self.db, customer, report.id, id).await?;
        self.artifacts.resolve(customer, report.id, &mut instance).await?;
        Ok(Response::new(instance))
    }

    async fn get_instance_statistics(
        &self,
        request: Request<GetInstanceRequest>,
    ) -> Result<Response<InstanceStatistics>, Status> {
        let customer = Caller::of(&request)?.customer;
        let (report, id) = instance_path(request.get_ref())?;
        store::check_exists(&self.db, customer, report).await?;
        instance::check_exists(&self.db, customer, report.id, id).await?;
        Ok(Response::new(instance::statistics::of(&self.db, customer, report.id).await?))
    }
}

/// Parses the path of an instance.
fn instance_path(request: &GetInstanceRequest) -> Result<(TestReportPath, InstanceId), Fault> {
    let report = TestReportPath::parse(
        &request.project_id,
        &request.test_case_id,
        &request.test_plan_id,
        &request.test_report_id,
    )?;
    Ok((report, InstanceId::from_path(&request.id)?))
}
