//! Test reports: what came of one test case in one execution.

mod progress;
mod review;
mod rules;
pub(crate) mod store;

use assay_auth::Caller;
use assay_proto::{
    CustomerId, ExecutionId, Fault, InstanceId, Listed, ProjectId, TestCaseId, TestPlanId,
    TestReportId,
    execution::{
        GetInstanceRequest, GetTestReportRequest, Instance, InstanceBatch, InstanceStatistics,
        ListInstancesRequest, TestReport, UpdateTestReportRequest, test_report_service_server,
    },
};
use assay_records::Change;
use assay_runtime::{
    begin,
    list::{self, Batches},
};
use futures::{Stream, TryStreamExt};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

pub(crate) use self::progress::{Ending, Progress};
use crate::{artifact::Artifacts, instance};

/// Answers calls about test reports and their instances.
pub(crate) struct TestReportService {
    db: PgPool,
    artifacts: Artifacts,
}

/// Where a client says that a report is. What is absent is not checked.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) project: Option<ProjectId>,
    pub(crate) test_case: Option<TestCaseId>,
    pub(crate) test_plan: Option<TestPlanId>,
    pub(crate) id: TestReportId,
}

impl Place {
    /// Reads the ids of a path.
    fn named(project: &str, test_case: &str, test_plan: &str, id: &str) -> Result<Self, Fault> {
        Ok(Self {
            project: Some(ProjectId::from_path(project)?),
            test_case: Some(TestCaseId::from_path(test_case)?),
            test_plan: Some(TestPlanId::from_path(test_plan)?),
            id: TestReportId::from_path(id)?,
        })
    }
}

impl TestReportService {
    pub(crate) fn new(db: PgPool, artifacts: Artifacts) -> Self {
        Self { db, artifacts }
    }
}

/// The reports of an execution, in the order of its test set, in parts that fit into a message.
pub(crate) fn of_execution(
    db: PgPool,
    customer: CustomerId,
    execution: ExecutionId,
) -> impl Stream<Item = Result<Vec<TestReport>, Fault>> + Send {
    let parts = list::whole(None, None, move |slice| {
        let db = db.clone();
        async move {
            let reports = store::list(&db, customer, execution, &slice).await?;
            Ok(reports.map(|report| ListedReport { report }))
        }
    });
    parts.map_ok(|part| part.into_iter().map(|listed: ListedReport| listed.report).collect())
}

/// A report as [`list::whole`] takes it: no batch of a contract lists them.
#[derive(Clone, PartialEq, prost::Message)]
struct ListedReport {
    #[prost(message, required, tag = "1")]
    report: TestReport,
}

impl Listed for ListedReport {
    fn cursor(&self) -> &str {
        &self.report.id
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
        let place = Place {
            project: ProjectId::from_path_if_any(request.project_id.as_deref())?,
            test_case: TestCaseId::from_path_if_any(request.test_case_id.as_deref())?,
            test_plan: TestPlanId::from_path_if_any(request.test_plan_id.as_deref())?,
            id: TestReportId::from_path(&request.id)?,
        };
        Ok(Response::new(store::get(&self.db, caller.customer, place).await?))
    }

    async fn update_test_report(
        &self,
        request: Request<UpdateTestReportRequest>,
    ) -> Result<Response<TestReport>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let place = Place::named(
            &request.project_id,
            &request.test_case_id,
            &request.test_plan_id,
            &request.id,
        )?;
        let UpdateTestReportRequest { data_version, changes, fields, .. } = request;
        let change = Change { data_version, changes, fields };

        let mut tx = begin(&self.db).await?;
        let report = review::review(&mut tx, &caller, place, change).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(report))
    }

    async fn list_instances(
        &self,
        request: Request<ListInstancesRequest>,
    ) -> Result<Response<Self::ListInstancesStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let path = request.into_inner();
        let place = Place::named(
            &path.project_id,
            &path.test_case_id,
            &path.test_plan_id,
            &path.test_report_id,
        )?;
        store::check(&self.db, customer, place).await?;
        let db = self.db.clone();
        list::answer(path.page, move |slice| {
            let db = db.clone();
            async move { instance::list(&db, customer, place.id, &slice).await }
        })
        .await
    }

    async fn get_instance(
        &self,
        request: Request<GetInstanceRequest>,
    ) -> Result<Response<Instance>, Status> {
        let customer = Caller::of(&request)?.customer;
        let (place, id) = place_of(request.get_ref())?;
        store::check(&self.db, customer, place).await?;
        let mut instance = instance::details(&self.db, customer, place.id, id).await?;
        self.artifacts.resolve(customer, place.id, &mut instance).await?;
        Ok(Response::new(instance))
    }

    async fn get_instance_statistics(
        &self,
        request: Request<GetInstanceRequest>,
    ) -> Result<Response<InstanceStatistics>, Status> {
        let customer = Caller::of(&request)?.customer;
        let (place, id) = place_of(request.get_ref())?;
        store::check(&self.db, customer, place).await?;
        instance::check(&self.db, customer, place.id, id).await?;
        Ok(Response::new(instance::statistics::of(&self.db, customer, place.id).await?))
    }
}

fn place_of(path: &GetInstanceRequest) -> Result<(Place, InstanceId), Fault> {
    let place = Place::named(
        &path.project_id,
        &path.test_case_id,
        &path.test_plan_id,
        &path.test_report_id,
    )?;
    Ok((place, InstanceId::from_path(&path.id)?))
}
