//! The gRPC service of the states of test cases.

use assay_auth::Caller;
use assay_database::begin;
use assay_ledger::test_case_state::{
    enable,
    rules::{self, enabled},
    set,
    store::{self, Author},
};
use assay_proto::{
    Fault, ProjectId, TestCaseId,
    catalog::FindRecordsRequest,
    execution::{
        CaseState, GetTestCaseStateRequest, ListTestCaseStatesRequest, TestCaseState,
        TestCaseStateBatch, UpdateTestCaseStateRequest, test_case_state_service_server,
    },
};
use assay_records::Change;
use assay_rpc::list::{Batches, answer};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use crate::{catalog::Catalog, parent};

/// The gRPC service of the states of test cases.
pub(crate) struct TestCaseStateService {
    pub(crate) db: PgPool,
    pub(crate) catalog: Catalog,
}

impl TestCaseStateService {
    /// Returns the project of a request, if it exists and has the test case.
    async fn project(
        &self,
        caller: &Caller,
        project_id: String,
        test_case_id: Option<String>,
    ) -> Result<ProjectId, Status> {
        let project = ProjectId::from_path(&project_id)?;
        let record = FindRecordsRequest { project_id, test_case_id, ..Default::default() };
        parent::check_exists(&self.db, &self.catalog, caller, project, record).await?;
        Ok(project)
    }
}

#[tonic::async_trait]
impl test_case_state_service_server::TestCaseStateService for TestCaseStateService {
    type ListTestCaseStatesStream = Batches<TestCaseStateBatch>;

    async fn list_test_case_states(
        &self,
        request: Request<ListTestCaseStatesRequest>,
    ) -> Result<Response<Self::ListTestCaseStatesStream>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let state = Some(request.state()).filter(|state| *state != CaseState::Unspecified);
        let project = self.project(&caller, request.project_id, None).await?;
        let (db, customer) = (self.db.clone(), caller.customer);
        answer(request.page, move |slice| {
            let db = db.clone();
            async move { store::list(&db, customer, project, state, &slice).await }
        })
        .await
    }

    async fn get_test_case_state(
        &self,
        request: Request<GetTestCaseStateRequest>,
    ) -> Result<Response<TestCaseState>, Status> {
        let caller = Caller::of(&request)?;
        let GetTestCaseStateRequest { project_id, test_case_id } = request.into_inner();
        let case = TestCaseId::from_path(&test_case_id)?;
        let project = self.project(&caller, project_id, Some(test_case_id.clone())).await?;
        let state = store::find(&self.db, caller.customer, project, case).await?;
        Ok(Response::new(state.unwrap_or_else(|| enabled(test_case_id))))
    }

    async fn update_test_case_state(
        &self,
        request: Request<UpdateTestCaseStateRequest>,
    ) -> Result<Response<TestCaseState>, Status> {
        let caller = Caller::of(&request)?;
        let UpdateTestCaseStateRequest { project_id, test_case_id, data_version, changes, fields } =
            request.into_inner();
        let project = ProjectId::from_path(&project_id)?;
        let case = TestCaseId::from_path(&test_case_id)?;
        let name = self.catalog.test_case_name(&caller, project_id, test_case_id.clone()).await?;
        let (customer, change) = (caller.customer, Change { data_version, changes, fields });
        let mut tx = begin(&self.db).await?;
        let current = store::lock(&mut tx, customer, project, case).await?;
        let is_enabled = current.is_none();
        let current = current.unwrap_or_else(|| enabled(test_case_id.clone()));
        let input = change.apply("state of a test case", &current, &current.data_version)?;
        let latest = store::latest_end(&mut *tx).await?;
        match rules::check_change(&current, input, latest, &caller.name)? {
            Some(state) => {
                let author = Author::User(&caller);
                set(&mut tx, customer, project, (case, &name), &state, author).await?;
            }
            None if is_enabled => {}
            None => enable(&mut tx, customer, project, case).await?,
        }
        let changed = store::find(&mut *tx, customer, project, case).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(changed.unwrap_or_else(|| enabled(test_case_id))))
    }
}
