//! A user of the catalog, with the requests that most tests need.

mod file;
mod target;

use assay_proto::{
    PlanStatus, Reference,
    catalog::{
        environment_service_client::EnvironmentServiceClient,
        favorite_service_client::FavoriteServiceClient, file_service_client::FileServiceClient,
        import_service_client::ImportServiceClient, project_service_client::ProjectServiceClient,
        snapshot_service_client::SnapshotServiceClient,
        subject_service_client::SubjectServiceClient,
        test_case_service_client::TestCaseServiceClient,
        test_plan_service_client::TestPlanServiceClient,
        test_set_service_client::TestSetServiceClient, *,
    },
};
use assay_rpc::grpc::Channel;
use assay_testkit::TestUser;
use futures::TryStreamExt as _;
use tonic::{Request, Response, Streaming};

pub(crate) use self::{file::messages, target::web_page};
use crate::world::{Answer, collect_set};

/// A user of the catalog.
#[derive(Clone)]
pub(crate) struct User {
    pub(crate) identity: TestUser,
    pub(crate) channel: Channel,
}

impl User {
    pub(crate) fn call<T>(&self, message: T) -> Request<T> {
        self.identity.call(message)
    }

    pub(crate) fn projects(&self) -> ProjectServiceClient<Channel> {
        ProjectServiceClient::new(self.channel.clone())
    }

    pub(crate) fn favorites(&self) -> FavoriteServiceClient<Channel> {
        FavoriteServiceClient::new(self.channel.clone())
    }

    pub(crate) fn files(&self) -> FileServiceClient<Channel> {
        FileServiceClient::new(self.channel.clone())
    }

    pub(crate) fn imports(&self) -> ImportServiceClient<Channel> {
        ImportServiceClient::new(self.channel.clone())
    }

    pub(crate) fn cases(&self) -> TestCaseServiceClient<Channel> {
        TestCaseServiceClient::new(self.channel.clone())
    }

    pub(crate) fn plans(&self) -> TestPlanServiceClient<Channel> {
        TestPlanServiceClient::new(self.channel.clone())
    }

    pub(crate) fn sets(&self) -> TestSetServiceClient<Channel> {
        TestSetServiceClient::new(self.channel.clone())
    }

    pub(crate) fn subjects(&self) -> SubjectServiceClient<Channel> {
        SubjectServiceClient::new(self.channel.clone())
    }

    pub(crate) fn environments(&self) -> EnvironmentServiceClient<Channel> {
        EnvironmentServiceClient::new(self.channel.clone())
    }

    pub(crate) fn snapshots(&self) -> SnapshotServiceClient<Channel> {
        SnapshotServiceClient::new(self.channel.clone())
    }

    /// Creates a project.
    pub(crate) async fn project(&self) -> Project {
        let project = ProjectInput { name: "Shop".into(), ..ProjectInput::default() };
        let request = self.call(CreateProjectRequest { project: Some(project) });
        self.projects().create_project(request).await.unwrap().into_inner()
    }

    pub(crate) async fn create_case(
        &self,
        project_id: &str,
        test_case: TestCaseInput,
    ) -> Answer<TestCase> {
        self.create_cases(project_id, vec![test_case]).await?.remove(0)
    }

    /// Creates test cases in one call. Returns the outcome of each.
    pub(crate) async fn create_cases(
        &self,
        project_id: &str,
        cases: Vec<TestCaseInput>,
    ) -> Answer<Vec<Answer<TestCase>>> {
        let of = |input| CreateTestCaseRequest { test_case: Some(input), ..Default::default() };
        let request = BatchCreateTestCasesRequest {
            project_id: project_id.to_owned(),
            requests: cases.into_iter().map(of).collect(),
        };
        let created = self.cases().batch_create_test_cases(self.call(request)).await?;
        let created = outcomes(created).await?.into_iter();
        Ok(created.map(|created| created.map(Option::unwrap)).collect())
    }

    /// Creates a test case with this identifier.
    pub(crate) async fn case(&self, project: &Project, identifier: &str) -> TestCase {
        let case = TestCaseInput {
            name: format!("Case {identifier}"),
            identifier: Some(identifier.to_owned()),
            ..TestCaseInput::default()
        };
        self.create_case(&project.id, case).await.unwrap()
    }

    /// Reads test cases in one call. Returns the outcome of each id.
    pub(crate) async fn find_cases(
        &self,
        project_id: Option<String>,
        ids: &[&str],
    ) -> Answer<Vec<Answer<TestCase>>> {
        let request = BatchGetTestCasesRequest { project_id, ids: owned(ids) };
        let found = self.cases().batch_get_test_cases(self.call(request)).await?;
        let found = outcomes(found).await?.into_iter();
        Ok(found.map(|found| found.map(Option::unwrap)).collect())
    }

    pub(crate) async fn find_case(&self, project_id: Option<String>, id: &str) -> Answer<TestCase> {
        self.find_cases(project_id, &[id]).await?.remove(0)
    }

    pub(crate) async fn get_case(&self, id: &str) -> TestCase {
        self.find_case(None, id).await.unwrap()
    }

    pub(crate) async fn update_case(
        &self,
        case: &TestCase,
        changes: TestCaseInput,
        fields: &[&str],
    ) -> Answer<TestCase> {
        let request = UpdateTestCaseRequest {
            id: case.id.clone(),
            data_version: case.data_version.clone(),
            changes: Some(changes),
            fields: owned(fields),
            ..Default::default()
        };
        let updated = self.update_cases(&case.project_id, vec![request], true).await?.remove(0);
        updated.map(Option::unwrap)
    }

    /// Updates test cases in one call. Returns the outcome of each.
    pub(crate) async fn update_cases(
        &self,
        project_id: &str,
        requests: Vec<UpdateTestCaseRequest>,
        waits: bool,
    ) -> Answer<Vec<Answer<Option<TestCase>>>> {
        let project_id = project_id.to_owned();
        let request = BatchUpdateTestCasesRequest { project_id, requests, waits };
        outcomes(self.cases().batch_update_test_cases(self.call(request)).await?).await
    }

    pub(crate) async fn archive_case(&self, case: &TestCase) -> TestCase {
        let changes = TestCaseInput { archived: true, ..TestCaseInput::default() };
        self.update_case(case, changes, &["Archived"]).await.unwrap()
    }

    pub(crate) async fn create_plan(
        &self,
        case: &TestCase,
        test_plan: TestPlanInput,
    ) -> Answer<TestPlan> {
        let request = CreateTestPlanRequest {
            project_id: case.project_id.clone(),
            test_case_id: case.id.clone(),
            test_plan: Some(test_plan),
        };
        self.plans().create_test_plan(self.call(request)).await.map(Response::into_inner)
    }

    pub(crate) async fn get_plan(&self, id: &str) -> TestPlan {
        let request =
            GetTestPlanRequest { project_id: None, test_case_id: None, id: id.to_owned() };
        self.plans().get_test_plan(self.call(request)).await.unwrap().into_inner()
    }

    pub(crate) async fn update_plan(
        &self,
        case: &TestCase,
        plan: &TestPlan,
        changes: TestPlanInput,
        fields: &[&str],
    ) -> Answer<TestPlan> {
        let request = UpdateTestPlanRequest {
            project_id: case.project_id.clone(),
            test_case_id: case.id.clone(),
            id: plan.id.clone(),
            data_version: Some(plan.data_version.clone()),
            changes: Some(changes),
            fields: owned(fields),
        };
        self.plans().update_test_plan(self.call(request)).await.map(Response::into_inner)
    }

    /// Creates a plan that is ready for execution.
    pub(crate) async fn ready_plan(&self, case: &TestCase) -> TestPlan {
        let plan = self.create_plan(case, TestPlanInput::default()).await.unwrap();
        let mut changes = TestPlanInput::default();
        changes.set_status(PlanStatus::ReadyForExecution);
        self.update_plan(case, &plan, changes, &["Status"]).await.unwrap()
    }

    pub(crate) async fn create_set(
        &self,
        project: &Project,
        test_set: TestSetInput,
    ) -> Answer<TestSetEntry> {
        let project_id = project.id.clone();
        let request = CreateTestSetRequest { project_id, test_set: Some(test_set) };
        self.sets().create_test_set(self.call(request)).await.map(Response::into_inner)
    }

    /// Creates a test set with these cases.
    pub(crate) async fn set(&self, project: &Project, cases: &[&TestCase]) -> TestSet {
        let test_cases = cases.iter().map(|case| Reference { id: case.id.clone() }).collect();
        let set = TestSetInput { name: "Nightly".into(), test_cases, ..TestSetInput::default() };
        let set = self.create_set(project, set).await.unwrap();
        self.get_set(&set.id).await.unwrap()
    }

    pub(crate) async fn get_set(&self, id: &str) -> Answer<TestSet> {
        let request = GetTestSetRequest { project_id: None, id: id.to_owned() };
        collect_set(self.sets().get_test_set(self.call(request)).await?.into_inner()).await
    }

    pub(crate) async fn update_set(
        &self,
        set: &TestSet,
        changes: TestSetInput,
        fields: &[&str],
    ) -> Answer<TestSet> {
        let request = UpdateTestSetRequest {
            project_id: set.project_id.clone(),
            id: set.id.clone(),
            data_version: Some(set.data_version.clone()),
            changes: Some(changes),
            fields: owned(fields),
        };
        collect_set(self.sets().update_test_set(self.call(request)).await?.into_inner()).await
    }
}

pub(crate) fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

async fn outcomes(
    answer: Response<Streaming<TestCaseReplyBatch>>,
) -> Answer<Vec<Answer<Option<TestCase>>>> {
    let batches: Vec<_> = answer.into_inner().try_collect().await?;
    Ok(batches.into_iter().flat_map(|batch| batch.items).map(Result::from).collect())
}
