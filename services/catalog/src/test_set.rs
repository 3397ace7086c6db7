//! Test sets, whose test cases are executed together.

mod details;
pub(crate) mod gate;
pub(crate) mod members;
mod rules;
pub(crate) mod store;

use assay_auth::Caller;
use assay_database::begin;
use assay_events::publish;
use assay_proto::{
    CustomerId, Fault, ProjectId, TestCaseId, TestSetId,
    catalog::{
        CreateTestSetRequest, DeleteTestSetRequest, Environment, ExcludeTestCasesRequest,
        GetTestSetRequest, IncludeTestCasesRequest, IncludedTestCaseBatch,
        ListIncludedTestCasesRequest, ListTestSetsOfTestCaseRequest, ListTestSetsRequest,
        RecordKind, Subject, TestCase, TestSet, TestSetBatch, TestSetEntry, TestSetInput,
        UpdateTestSetRequest, test_set_service_server,
    },
};
use assay_records::{Action, Change};
use assay_rpc::list::{self, Batches};
use sqlx::{PgPool, PgTransaction};
use tonic::{Request, Response, Status};

use self::rules::Selected;
use crate::{event::EventSource, filter, opening::Openings, project, records::Records};

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
        let filter = request.filter();
        let (db, customer, user) = (self.db.clone(), caller.customer, caller.user);
        list::answer(filter::page(filter, request.page), move |slice| {
            let db = db.clone();
            async move {
                let records = Records::<TestSet>::of(customer, project);
                records.list(&db, user, filter, &[], &slice).await
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
        let set = match project {
            Some(project) => {
                Records::<TestSet>::of(caller.customer, project).get(&self.db, id).await?
            }
            None => Records::<TestSet>::get_in_any_project(&self.db, caller.customer, id).await?,
        };
        let project = ProjectId::from_record(&set.project_id)?;
        self.openings.note(&caller, RecordKind::TestSet, id.0, project.0);
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
        let mut tx = begin(&self.db).await?;
        let input = request.test_set.unwrap_or_default();
        let set = create(&mut tx, customer, project, input).await?;
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
        let current = Records::<TestSet>::of(customer, project).lock(&mut tx, id).await?;
        let input = rules::valid(change.apply("test set", &current, &current.data_version)?)?;
        let selected = Selected::by(&input)?;
        let before = Selected::of(&current)?;
        lock_selected(&mut tx, customer, project, selected, before).await?;
        if replaces_cases {
            let cases = rules::members(&input.test_cases)?;
            members::check_live(&mut tx, customer, project, &cases).await?;
            members::replace(&mut tx, customer, id, &cases.ids).await?;
        }
        let set = store::update(&mut tx, customer, project, id, &input).await?;
        let action = Action::of_change(current.archived, set.archived);
        publish(
            &mut tx,
            &EventSource::TestSet(project, id).event(action, customer, Some(&set.data_version))?,
        )
        .await?;
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
        project::store::lock_exclusive(&mut tx, customer, project).await?;
        Records::<TestSet>::of(customer, project).mark_deleted(&mut tx, id).await?;
        publish(
            &mut tx,
            &EventSource::TestSet(project, id).event(Action::Deleted, customer, None)?,
        )
        .await?;
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
        Records::<TestCase>::of(customer, project).find(&self.db, case).await?;
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
        Records::<TestSet>::of(customer, project).find(&self.db, set).await?;
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
        let mut set = Records::<TestSet>::of(customer, project).lock(&mut tx, id).await?;
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
        Records::<TestSet>::of(customer, project).lock(&mut tx, id).await?;
        members::check_known(&mut tx, customer, project, &cases).await?;
        if members::exclude(&mut tx, customer, id, &cases.ids).await? > 0 {
            members_changed(&mut tx, customer, project, id).await?;
        }
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(()))
    }
}

/// Records and publishes that the test cases of a locked set have changed. Returns its data version.
pub(crate) async fn members_changed(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: TestSetId,
) -> Result<String, Fault> {
    let data_version = store::touch(tx, customer, id).await?;
    publish(
        tx,
        &EventSource::TestSet(project, id).event(Action::Changed, customer, Some(&data_version))?,
    )
    .await?;
    Ok(data_version)
}

/// Creates a test set.
pub(crate) async fn create(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    input: TestSetInput,
) -> Result<TestSetEntry, Fault> {
    let id = TestSetId::new();
    let input = rules::valid(rules::new(input))?;
    let selected = Selected::by(&input)?;
    let cases = rules::members(&input.test_cases)?;
    project::store::lock_shared(tx, customer, project).await?;
    lock_selected(tx, customer, project, selected, Selected::default()).await?;
    let set = store::insert(tx, customer, project, id, &input).await?;
    members::check_live(tx, customer, project, &cases).await?;
    members::include(tx, customer, id, &cases.ids).await?;
    publish(tx, &EventSource::TestSet(project, id).event(Action::Created, customer, Some("1"))?)
        .await?;
    Ok(set)
}

/// Locks the subject and the environment that are newly selected against deletion.
async fn lock_selected(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    selected: Selected,
    before: Selected,
) -> Result<(), Fault> {
    if selected.subject != before.subject {
        let field = Selected::SUBJECT;
        let subjects = Records::<Subject>::of(customer, project);
        subjects.lock_referenced(tx, field, selected.subject).await?;
    }
    if selected.environment != before.environment {
        let field = Selected::ENVIRONMENT;
        let environments = Records::<Environment>::of(customer, project);
        environments.lock_referenced(tx, field, selected.environment).await?;
    }
    Ok(())
}
