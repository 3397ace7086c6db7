//! Test sets: test cases that are executed together.

mod details;
pub(crate) mod members;
mod rules;
pub(crate) mod store;

use assay_auth::Caller;
use assay_events::publish;
use assay_proto::{
    CustomerId, Fault, ProjectId, TestCaseId, TestSetId,
    catalog::{
        CreateTestSetRequest, DeleteTestSetRequest, ExcludeTestCasesRequest, GetTestSetRequest,
        IncludeTestCasesRequest, IncludedTestCaseBatch, ListIncludedTestCasesRequest,
        ListTestSetsOfTestCaseRequest, ListTestSetsRequest, RecordKind, TestSet, TestSetBatch,
        TestSetEntry, TestSetInput, UpdateTestSetRequest, test_set_service_server,
    },
};
use assay_records::{Action, Change};
use assay_runtime::{
    begin,
    list::{self, Batches},
};
use sqlx::{PgPool, PgTransaction};
use tonic::{Request, Response, Status};

use self::rules::Selected;
use crate::{
    deletion, environment, opening::Openings, page, project, record::Record, shelf::Shelf, subject,
    test_case,
};

pub(crate) struct TestSetService {
    pub(crate) db: PgPool,
    pub(crate) openings: Openings,
}

#[tonic::async_trait]
impl test_set_service_server::TestSetService for TestSetService {
    type ListTestSetsStream = Batches<TestSetBatch>;
    type ListTestSetsOfTestCaseStream = Batches<TestSetBatch>;
    type GetTestSetStream = Batches<TestSet>;
    type UpdateTestSetStream = Batches<TestSet>;
    type ListIncludedTestCasesStream = Batches<IncludedTestCaseBatch>;
    type IncludeTestCasesStream = Batches<TestSet>;

    async fn list_test_sets(
        &self,
        request: Request<ListTestSetsRequest>,
    ) -> Result<Response<Self::ListTestSetsStream>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let which = Shelf::of(&caller, RecordKind::TestSet, request.shelf());
        let db = self.db.clone();
        list::answer(request.page, move |slice| {
            let db = db.clone();
            async move {
                let sets = store::list(&db, which, project, &slice).await?;
                page::of_project(&db, which.customer, project, sets).await
            }
        })
        .await
    }

    async fn get_test_set(
        &self,
        request: Request<GetTestSetRequest>,
    ) -> Result<Response<Self::GetTestSetStream>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = ProjectId::from_path_if_any(request.project_id.as_deref())?;
        let id = TestSetId::from_path(&request.id)?;
        let set = store::get(&self.db, caller.customer, project, id).await?;
        if request.opens {
            let project = ProjectId::from_path(&set.project_id)?;
            self.openings.note(&caller, RecordKind::TestSet, id.0, project.0);
        }
        let mut db = self.db.acquire().await.map_err(Fault::from)?;
        let cases = details::first_cases(&mut db, caller.customer, id).await?;
        Ok(details::answer(&self.db, caller.customer, id, set, cases)?)
    }

    async fn create_test_set(
        &self,
        request: Request<CreateTestSetRequest>,
    ) -> Result<Response<TestSetEntry>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = TestSetId::new();
        let input = rules::valid(request.test_set.unwrap_or_default())?;
        let selected = Selected::by(&input)?;
        let cases = rules::members(&input.test_cases)?;

        let mut tx = begin(&self.db).await?;
        project::store::hold(&mut tx, customer, project).await?;
        hold(&mut tx, customer, project, selected, Selected::default()).await?;
        let set = store::insert(&mut tx, customer, project, id, &input, selected).await?;
        members::check_live(&mut tx, customer, project, &cases).await?;
        members::include(&mut tx, customer, id, &cases.ids).await?;
        publish(&mut tx, &Record::TestSet(project, id).was(Action::Created, customer)?).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(set))
    }

    async fn update_test_set(
        &self,
        request: Request<UpdateTestSetRequest>,
    ) -> Result<Response<Self::UpdateTestSetStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let UpdateTestSetRequest { project_id, id, data_version, changes, fields } =
            request.into_inner();
        let project = ProjectId::from_path(&project_id)?;
        let id = TestSetId::from_path(&id)?;
        let replaces_cases = fields.iter().any(|field| field == "TestCases");
        let change = Change::<TestSetInput> { data_version, changes, fields };

        let mut tx = begin(&self.db).await?;
        let current = store::lock(&mut tx, customer, project, id).await?;
        let input = rules::valid(change.of("test set", &current, &current.data_version)?)?;
        let selected = Selected::by(&input)?;
        hold(&mut tx, customer, project, selected, Selected::of(&current)?).await?;
        if replaces_cases {
            let cases = rules::members(&input.test_cases)?;
            members::check_live(&mut tx, customer, project, &cases).await?;
            members::replace(&mut tx, customer, id, &cases.ids).await?;
        }
        let set = store::update(&mut tx, customer, id, &input, selected).await?;
        let action = Action::of_change(current.archived, set.archived);
        publish(&mut tx, &Record::TestSet(project, id).was(action, customer)?).await?;
        let cases = details::first_cases(&mut tx, customer, id).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(details::answer(&self.db, customer, id, set, cases)?)
    }

    async fn delete_test_set(
        &self,
        request: Request<DeleteTestSetRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = TestSetId::from_path(&request.id)?;

        let mut tx = begin(&self.db).await?;
        project::store::claim(&mut tx, customer, project).await?;
        deletion::of_test_set(&mut tx, customer, project, id).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(()))
    }

    async fn list_test_sets_of_test_case(
        &self,
        request: Request<ListTestSetsOfTestCaseRequest>,
    ) -> Result<Response<Self::ListTestSetsOfTestCaseStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let case = TestCaseId::from_path(&request.test_case_id)?;
        test_case::store::find(&self.db, customer, project, case).await?;
        let (db, archived) = (self.db.clone(), request.archived);
        list::answer(request.page, move |slice| {
            let db = db.clone();
            async move { store::list_of_case(&db, customer, case, archived, &slice).await }
        })
        .await
    }

    async fn list_included_test_cases(
        &self,
        request: Request<ListIncludedTestCasesRequest>,
    ) -> Result<Response<Self::ListIncludedTestCasesStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let set = TestSetId::from_path(&request.test_set_id)?;
        store::find(&self.db, customer, project, set).await?;
        let db = self.db.clone();
        list::answer(request.page, move |slice| {
            let db = db.clone();
            async move { members::list(&db, customer, set, &slice).await }
        })
        .await
    }

    async fn include_test_cases(
        &self,
        request: Request<IncludeTestCasesRequest>,
    ) -> Result<Response<Self::IncludeTestCasesStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = TestSetId::from_path(&request.test_set_id)?;
        let cases = rules::listed(&request.test_cases)?;

        let mut tx = begin(&self.db).await?;
        let mut set = store::lock(&mut tx, customer, project, id).await?;
        members::check_live(&mut tx, customer, project, &cases).await?;
        if members::include(&mut tx, customer, id, &cases.ids).await? > 0 {
            set.data_version = members_changed(&mut tx, customer, project, id).await?;
        }
        let cases = details::first_cases(&mut tx, customer, id).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(details::answer(&self.db, customer, id, set, cases)?)
    }

    async fn exclude_test_cases(
        &self,
        request: Request<ExcludeTestCasesRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = TestSetId::from_path(&request.test_set_id)?;
        let cases = rules::listed(&request.test_cases)?;

        let mut tx = begin(&self.db).await?;
        store::lock(&mut tx, customer, project, id).await?;
        members::check_known(&mut tx, customer, project, &cases).await?;
        if members::exclude(&mut tx, customer, id, &cases.ids).await? > 0 {
            members_changed(&mut tx, customer, project, id).await?;
        }
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(()))
    }
}

/// Counts and tells that a locked set includes other cases now; returns its new data version.
pub(crate) async fn members_changed(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: TestSetId,
) -> Result<String, Fault> {
    let data_version = store::touch(tx, customer, id).await?;
    publish(tx, &Record::TestSet(project, id).was(Action::Changed, customer)?).await?;
    Ok(data_version)
}

/// Makes sure that what is newly selected can be.
async fn hold(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    selected: Selected,
    before: Selected,
) -> Result<(), Fault> {
    if selected.subject != before.subject {
        let field = Selected::SUBJECT;
        subject::store::hold(tx, customer, project, field, selected.subject).await?;
    }
    if selected.environment != before.environment {
        let field = Selected::ENVIRONMENT;
        environment::store::hold(tx, customer, project, field, selected.environment).await?;
    }
    Ok(())
}
