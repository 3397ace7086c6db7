//! Test cases.

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

use crate::{deletion, event::EventSource, opening::Openings, project, records::Records};

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
        let filter = request.filter();
        let (db, customer, user) = (self.db.clone(), caller.customer, caller.user);
        list::answer(request.page, move |slice| {
            let db = db.clone();
            async move {
                Records::<TestCase>::of(customer, project).list(&db, user, filter, &slice).await
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
        let case = match project {
            Some(project) => {
                Records::<TestCase>::of(caller.customer, project).get(&self.db, id).await?
            }
            None => Records::<TestCase>::get_in_any_project(&self.db, caller.customer, id).await?,
        };
        let project = ProjectId::from_record(&case.project_id)?;
        self.openings.note(&caller, RecordKind::TestCase, id.0, project.0);
        Ok(Response::new(case))
    }

    async fn create_test_case(
        &self,
        request: Request<CreateTestCaseRequest>,
    ) -> Result<Response<TestCase>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let input = rules::valid(rules::new(request.test_case.unwrap_or_default()))?;
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
        let current = Records::<TestCase>::of(customer, project).lock(&mut tx, id).await?;
        let version = current.data_version.as_deref().unwrap_or_default();
        let input = TestCaseInput {
            // A test case keeps its identifier.
            identifier: Some(current.identifier.clone()),
            ..change.apply("test case", &current, version)?
        };
        let case = store::update(&mut tx, customer, project, id, &rules::valid(input)?).await?;
        let action = Action::of_change(current.archived, case.archived);
        publish(&mut tx, &EventSource::TestCase(project, id).event(action, customer)?).await?;
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
        project::store::lock_exclusive(&mut tx, customer, project).await?;
        deletion::delete_test_case(&mut tx, customer, project, id).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(()))
    }
}
