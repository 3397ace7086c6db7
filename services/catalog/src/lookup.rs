//! Lookups of records by other services, which do not count as openings by a user.

mod store;

use assay_auth::Caller;
use assay_proto::{
    EnvironmentId, ProjectId, TestCaseId, TestPlanId, TestSetId,
    catalog::{
        FindIdentifiersRequest, FindRecordsRequest, FoundIdentifiers, GetMetricsSettingsRequest,
        GetOriginRequest, MetricsSettings, Origin, lookup_service_server,
    },
};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

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

    async fn get_metrics_settings(
        &self,
        request: Request<GetMetricsSettingsRequest>,
    ) -> Result<Response<MetricsSettings>, Status> {
        let customer = Caller::of(&request)?.customer;
        let project = ProjectId::from_path(&request.get_ref().project_id)?;
        Ok(Response::new(store::metrics_settings(&self.db, customer, project).await?))
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
