//! Test cases: what is tested.

pub(crate) mod identifiers;
pub(crate) mod rules;
pub(crate) mod store;

use assay_auth::Caller;
use assay_events::publish;
use assay_proto::{
    Fault, ProjectId, TestCaseId,
    catalog::{
        CreateTestCaseRequest, DeleteTestCaseRequest, GetTestCaseRequest, ListTestCasesRequest,
        RecordKind, TestCase, TestCaseBatch, TestCaseInput, UpdateTestCaseRequest,
        test_case_service_server,
    },
};
use assay_records::{Action, Change};
use assay_runtime::{
    begin,
    list::{self, Batches},
};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use crate::{deletion, opening::Openings, page, project, record::Record, shelf::Shelf};

pub(crate) struct TestCaseService {
    pub(crate) db: PgPool,
    pub(crate) openings: Openings,
}

#[tonic::async_trait]
impl test_case_service_server::TestCaseService for TestCaseService {
    type ListTestCasesStream = Batches<TestCaseBatch>;

    async fn list_test_cases(
        &self,
        request: Request<ListTestCasesRequest>,
    ) -> Result<Response<Self::ListTestCasesStream>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let which = Shelf::of(&caller, RecordKind::TestCase, request.shelf());
        let db = self.db.clone();
        list::answer(request.page, move |slice| {
            let db = db.clone();
            async move {
                let cases = store::list(&db, which, project, &slice).await?;
                page::of_project(&db, which.customer, project, cases).await
            }
        })
        .await
    }

    async fn get_test_case(
        &self,
        request: Request<GetTestCaseRequest>,
    ) -> Result<Response<TestCase>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = ProjectId::from_path_if_any(request.project_id.as_deref())?;
        let id = TestCaseId::from_path(&request.id)?;
        let case = store::get(&self.db, caller.customer, project, id).await?;
        if request.opens {
            let project = ProjectId::from_path(&case.project_id)?;
            self.openings.note(&caller, RecordKind::TestCase, id.0, project.0);
        }
        Ok(Response::new(case))
    }

    async fn create_test_case(
        &self,
        request: Request<CreateTestCaseRequest>,
    ) -> Result<Response<TestCase>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let input = rules::valid(request.test_case.unwrap_or_default())?;
        Ok(Response::new(store::create(&self.db, customer, project, &input).await?))
    }

    async fn update_test_case(
        &self,
        request: Request<UpdateTestCaseRequest>,
    ) -> Result<Response<TestCase>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = TestCaseId::from_path(&request.id)?;
        let UpdateTestCaseRequest { data_version, changes, fields, .. } = request;
        let change = Change { data_version, changes, fields };

        let mut tx = begin(&self.db).await?;
        let current = store::lock(&mut tx, customer, project, id).await?;
        let version = current.data_version.as_deref().unwrap_or_default();
        let input = TestCaseInput {
            // It is the case's for ever.
            identifier: Some(current.identifier.clone()),
            ..change.of("test case", &current, version)?
        };
        let case = store::update(&mut tx, customer, id, &rules::valid(input)?).await?;
        let action = Action::of_change(current.archived, case.archived);
        publish(&mut tx, &Record::TestCase(project, id).was(action, customer)?).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(case))
    }

    async fn delete_test_case(
        &self,
        request: Request<DeleteTestCaseRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = TestCaseId::from_path(&request.id)?;

        let mut tx = begin(&self.db).await?;
        project::store::claim(&mut tx, customer, project).await?;
        deletion::of_test_case(&mut tx, customer, project, id).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(()))
    }
}
