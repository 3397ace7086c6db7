//! The gRPC service of test reports.

use std::sync::Arc;

use assay_auth::Caller;
use assay_database::begin;
use assay_ledger::{
    execution::store::find,
    instance,
    test_report::{path::TestReportPath, store},
};
use assay_proto::{
    ExecutionId, Fault, InstanceId, ProjectId, ReviewId, TestCaseId, TestPlanId, TestReportId,
    execution::{
        GetInstanceRequest, GetPositionRequest, GetTestReportRequest, Instance, InstanceBatch,
        InstanceStatistics, ListInstancesRequest, ListTestReportsRequest, ReviewTestReportsRequest,
        ReviewedTestReports, TestReport, TestReportBatch, TestReportPosition, UndoReviewRequest,
        UpdateTestReportRequest, test_report_service_server,
    },
};
use assay_records::Change;
use assay_rpc::list::{Batches, answer, pattern};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use super::{
    entries::{self, Filter},
    position::{self, Listed},
    review,
};
use crate::artifact::Artifacts;

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
    type ListTestReportsStream = Batches<TestReportBatch>;
    type ListInstancesStream = Batches<InstanceBatch>;

    async fn list_test_reports(
        &self,
        request: Request<ListTestReportsRequest>,
    ) -> Result<Response<Self::ListTestReportsStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path_if_any(request.project_id.as_deref())?;
        let id = ExecutionId::from_path(&request.execution_id)?;
        let filter = Filter::of(&request)?;
        let state = find(&self.db, customer, project, id).await?;
        let (db, context) = (self.db.clone(), Arc::new((state, filter)));
        answer(request.page, move |slice| {
            let (db, context) = (db.clone(), context.clone());
            async move { entries::list(&db, customer, &context.0, &context.1, &slice).await }
        })
        .await
    }

    async fn get_position(
        &self,
        request: Request<GetPositionRequest>,
    ) -> Result<Response<TestReportPosition>, Status> {
        let customer = Caller::of(&request)?.customer;
        let GetPositionRequest { list, id, by_cause } = request.into_inner();
        let list = list.unwrap_or_default();
        let project = ProjectId::from_path_if_any(list.project_id.as_deref())?;
        let execution = ExecutionId::from_path(&list.execution_id)?;
        let id = TestReportId::from_path(&id)?;
        let filter = Filter::of(&list)?;
        let sought = list.page.and_then(|page| page.q).filter(|text| !text.is_empty());
        let list = Listed { filter, pattern: sought.as_deref().map(pattern), by_cause };
        find(&self.db, customer, project, execution).await?;
        Ok(Response::new(position::of(&self.db, customer, execution, id, &list).await?))
    }

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

    async fn review_test_reports(
        &self,
        request: Request<ReviewTestReportsRequest>,
    ) -> Result<Response<ReviewedTestReports>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = ProjectId::from_path_if_any(request.project_id.as_deref())?;
        let id = ExecutionId::from_path(&request.execution_id)?;
        let review = request.review.unwrap_or_default();

        let mut tx = begin(&self.db).await?;
        let reviewed = review::review_several(&mut tx, &caller, (project, id), review).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(reviewed))
    }

    async fn undo_review(
        &self,
        request: Request<UndoReviewRequest>,
    ) -> Result<Response<()>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = ProjectId::from_path_if_any(request.project_id.as_deref())?;
        let execution = ExecutionId::from_path(&request.execution_id)?;
        let id = ReviewId::from_path(&request.id)?;

        let mut tx = begin(&self.db).await?;
        review::undo(&mut tx, &caller, (project, execution), id).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(()))
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
        self.artifacts.resolve(customer, report.id, None, &mut instance).await?;
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
