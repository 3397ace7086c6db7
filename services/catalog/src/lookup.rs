//! Lookups of records by other services, which do not count as openings by a user.

mod store;

use assay_auth::Caller;
use assay_proto::{
    CustomerId, EnvironmentId, Fault, ProjectId, TestCaseId, TestPlanId, TestSetId,
    catalog::{
        DeletedProjects, FindDeletedProjectsRequest, FindIdentifiersRequest, FindRecordsRequest,
        FoundIdentifiers, Gate, GetGateRequest, GetMetricsSettingsRequest, GetOriginRequest,
        GetTestCaseNameRequest, MetricsSettings, Origin, ProjectOfCustomer, TestCaseName,
        lookup_service_server,
    },
};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use crate::test_set::gate;

/// Maximum number of projects in a question.
const MOST_PROJECTS: usize = 1000;

pub(crate) struct LookupService {
    pub(crate) db: PgPool,
}

#[tonic::async_trait]
impl lookup_service_server::LookupService for LookupService {
    async fn find_records(
        &self,
        request: Request<FindRecordsRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let case = TestCaseId::from_path_if_any(request.test_case_id.as_deref())?;
        let set = TestSetId::from_path_if_any(request.test_set_id.as_deref())?;
        let environment = EnvironmentId::from_path_if_any(request.environment_id.as_deref())?;
        store::find(&self.db, customer, project, case, set, environment).await?;
        Ok(Response::new(()))
    }

    async fn find_identifiers(
        &self,
        request: Request<FindIdentifiersRequest>,
    ) -> Result<Response<FoundIdentifiers>, Status> {
        let customer = Caller::of(&request)?.customer;
        let FindIdentifiersRequest { project_id, identifiers } = request.into_inner();
        let project = ProjectId::from_path(&project_id)?;
        let identifiers = store::identifiers(&self.db, customer, project, &identifiers).await?;
        Ok(Response::new(FoundIdentifiers { identifiers }))
    }

    async fn get_test_case_name(
        &self,
        request: Request<GetTestCaseNameRequest>,
    ) -> Result<Response<TestCaseName>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = TestCaseId::from_path(&request.id)?;
        Ok(Response::new(store::test_case_name(&self.db, customer, project, id).await?))
    }

    async fn get_metrics_settings(
        &self,
        request: Request<GetMetricsSettingsRequest>,
    ) -> Result<Response<MetricsSettings>, Status> {
        let customer = Caller::of(&request)?.customer;
        let project = ProjectId::from_path(&request.get_ref().project_id)?;
        Ok(Response::new(store::metrics_settings(&self.db, customer, project).await?))
    }

    async fn get_gate(&self, request: Request<GetGateRequest>) -> Result<Response<Gate>, Status> {
        let customer = Caller::of(&request)?.customer;
        let GetGateRequest { project_id, test_set_id, replacement } = request.into_inner();
        let project = ProjectId::from_path(&project_id)?;
        let set = TestSetId::from_path(&test_set_id)?;
        let present = store::gate(&self.db, customer, project, set).await?;
        Ok(Response::new(replacement.map(gate::resolved).transpose()?.unwrap_or(present)))
    }

    async fn find_deleted_projects(
        &self,
        request: Request<FindDeletedProjectsRequest>,
    ) -> Result<Response<DeletedProjects>, Status> {
        let projects = request.into_inner().projects;
        if projects.len() > MOST_PROJECTS {
            let problem = format!("must have at most {MOST_PROJECTS} elements");
            return Err(Fault::invalid("projects", problem).into());
        }
        let ids = |project: &ProjectOfCustomer| {
            let customer = CustomerId::from_field("customerId", &project.customer_id)?;
            Ok((customer, ProjectId::from_field("projectId", &project.project_id)?))
        };
        let ids: Result<Vec<_>, Fault> = projects.iter().map(ids).collect();
        let projects = store::deleted_projects(&self.db, &ids?).await?;
        Ok(Response::new(DeletedProjects { projects }))
    }

    async fn get_origin(
        &self,
        request: Request<GetOriginRequest>,
    ) -> Result<Response<Origin>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let case = TestCaseId::from_path(&request.test_case_id)?;
        let plan = TestPlanId::from_path(&request.test_plan_id)?;
        Ok(Response::new(Origin {
            project: Some(store::project(&self.db, customer, project).await?),
            test_case: Some(store::test_case(&self.db, customer, project, case).await?),
            test_plan: Some(store::test_plan(&self.db, customer, case, plan).await?),
        }))
    }
}
