//! Calls of the catalog.

use anyhow::{Context as _, Result};
use assay_proto::{
    PlanStatus, Reference, VariableInput,
    catalog::{
        environment_service_client::EnvironmentServiceClient,
        project_service_client::ProjectServiceClient,
        snapshot_service_client::SnapshotServiceClient,
        subject_service_client::SubjectServiceClient,
        test_case_service_client::TestCaseServiceClient,
        test_plan_service_client::TestPlanServiceClient,
        test_set_service_client::TestSetServiceClient, *,
    },
};
use futures::stream;

use crate::world::World;

impl World {
    /// Creates a project with an empty test set.
    pub(crate) async fn project_with_set(&self) -> Result<(String, String)> {
        let project = ProjectInput { name: "Shop".into(), ..ProjectInput::default() };
        let project = ProjectServiceClient::new(self.catalog.clone())
            .create_project(self.user.call(CreateProjectRequest { project: Some(project) }))
            .await?
            .into_inner()
            .id;
        let set = TestSetInput {
            name: "Nightly".into(),
            tags: Some("nightly".into()),
            ..TestSetInput::default()
        };
        let request = CreateTestSetRequest { project_id: project.clone(), test_set: Some(set) };
        let set = TestSetServiceClient::new(self.catalog.clone())
            .create_test_set(self.user.call(request))
            .await?
            .into_inner()
            .id;
        Ok((project, set))
    }

    /// Includes test cases in the set, each with a ready plan of this number of instances.
    pub(crate) async fn include(&self, cases: &[(&str, i32)]) -> Result<()> {
        let target = SnapshotTarget {
            project_id: self.project.clone(),
            test_set_id: self.set.clone(),
            ..SnapshotTarget::default()
        };
        let case = |(identifier, _): &(&str, i32)| ReportedTestCase {
            identifier: (*identifier).to_owned(),
            name: format!("Test of {identifier}"),
            ..ReportedTestCase::default()
        };
        let request = AdoptTestCasesRequest {
            target: Some(target),
            test_cases: cases.iter().map(case).collect(),
            last: true,
        };
        let mut parts = SnapshotServiceClient::new(self.catalog.clone())
            .adopt_test_cases(self.user.call(stream::iter([request])))
            .await?
            .into_inner();
        let mut adopted = Vec::new();
        while let Some(part) = parts.message().await? {
            adopted.extend(part.test_cases);
        }
        for (case, (_, instances)) in adopted.iter().zip(cases) {
            if *instances != 1 {
                self.plan(&case.id, *instances).await?;
            }
        }
        Ok(())
    }

    /// Makes an identifier the alias of a test case.
    pub(crate) async fn alias(&self, test_case: &str, identifier: &str) -> Result<()> {
        let request = ReplaceAliasesRequest {
            project_id: self.project.clone(),
            id: test_case.to_owned(),
            aliases: Some(TestCaseAliasesInput { aliases: vec![identifier.to_owned()] }),
        };
        let mut cases = TestCaseServiceClient::new(self.catalog.clone());
        cases.replace_aliases(self.user.call(request)).await?;
        Ok(())
    }

    pub(crate) async fn change_project(
        &self,
        changes: ProjectInput,
        fields: &[&str],
    ) -> Result<()> {
        let request = UpdateProjectRequest {
            id: self.project.clone(),
            changes: Some(changes),
            fields: fields.iter().map(ToString::to_string).collect(),
            ..UpdateProjectRequest::default()
        };
        ProjectServiceClient::new(self.catalog.clone())
            .update_project(self.user.call(request))
            .await?;
        Ok(())
    }

    pub(crate) async fn change_set(&self, changes: TestSetInput, fields: &[&str]) -> Result<()> {
        let request = UpdateTestSetRequest {
            project_id: self.project.clone(),
            id: self.set.clone(),
            changes: Some(changes),
            fields: fields.iter().map(ToString::to_string).collect(),
            ..UpdateTestSetRequest::default()
        };
        TestSetServiceClient::new(self.catalog.clone())
            .update_test_set(self.user.call(request))
            .await?;
        Ok(())
    }

    /// Lets a failure stop executions of the set.
    pub(crate) async fn stop_on_failure(&self) -> Result<()> {
        let changes = TestSetInput { stop_on_failure: true, ..TestSetInput::default() };
        self.change_set(changes, &["StopOnFailure"]).await
    }

    /// Creates an environment with a secret password, and selects it for the set.
    pub(crate) async fn select_environment(&self, group: &str, secret: &str) -> Result<String> {
        let environment = EnvironmentInput {
            name: "Lab".into(),
            target_group: group.into(),
            password: secret.into(),
            ..EnvironmentInput::default()
        };
        self.select(environment).await
    }

    /// Creates an environment, and selects it for the set.
    pub(crate) async fn select(&self, environment: EnvironmentInput) -> Result<String> {
        let request = CreateEnvironmentRequest {
            project_id: self.project.clone(),
            environment: Some(environment),
        };
        let environment = EnvironmentServiceClient::new(self.catalog.clone())
            .create_environment(self.user.call(request))
            .await?
            .into_inner();
        let changes = TestSetInput {
            selected_environment_id: Some(environment.id.clone()),
            ..TestSetInput::default()
        };
        self.change_set(changes, &["SelectedEnvironmentId"]).await?;
        Ok(environment.id)
    }

    /// Creates a subject with a secret variable, and selects it for the set.
    pub(crate) async fn select_subject(&self, secret: &str) -> Result<String> {
        self.select_subject_with(vec![variable("TOKEN", secret)]).await
    }

    /// Creates a subject with variables, and selects it for the set.
    pub(crate) async fn select_subject_with(
        &self,
        variables: Vec<VariableInput>,
    ) -> Result<String> {
        let subject = SubjectInput {
            identifier: "1.0".into(),
            name: "Web shop".into(),
            uri: "https://shop.example.org/".into(),
            subject_type: SubjectType::Webpage.into(),
            variables,
            ..SubjectInput::default()
        };
        let request =
            CreateSubjectRequest { project_id: self.project.clone(), subject: Some(subject) };
        let subject = SubjectServiceClient::new(self.catalog.clone())
            .create_subject(self.user.call(request))
            .await?
            .into_inner();
        let changes = TestSetInput {
            selected_subject_id: Some(subject.id.clone()),
            ..TestSetInput::default()
        };
        self.change_set(changes, &["SelectedSubjectId"]).await?;
        Ok(subject.id)
    }

    /// Deletes a test case of the project.
    pub(crate) async fn delete_case(&self, id: &str) -> Result<()> {
        let request = DeleteTestCaseRequest { project_id: self.project.clone(), id: id.to_owned() };
        TestCaseServiceClient::new(self.catalog.clone())
            .delete_test_case(self.user.call(request))
            .await?;
        Ok(())
    }

    /// Deletes the test set.
    pub(crate) async fn delete_set(&self) -> Result<()> {
        let (project_id, id) = (self.project.clone(), self.set.clone());
        TestSetServiceClient::new(self.catalog.clone())
            .delete_test_set(self.user.call(DeleteTestSetRequest { project_id, id }))
            .await?;
        Ok(())
    }

    pub(crate) async fn delete_project(&self) -> Result<()> {
        let request = DeleteProjectRequest { id: self.project.clone() };
        ProjectServiceClient::new(self.catalog.clone())
            .delete_project(self.user.call(request))
            .await?;
        Ok(())
    }

    /// Makes the password of an environment undecipherable.
    pub(crate) async fn corrupt_password(&self, environment: &str) -> Result<()> {
        let corrupted =
            sqlx::query("update environment set password = 'lost:AAAA' where id = $1::uuid")
                .bind(environment)
                .execute(&self.catalog_db)
                .await?;
        anyhow::ensure!(corrupted.rows_affected() == 1, "no such environment");
        Ok(())
    }

    pub(crate) async fn rename_subject(&self, subject: &str) -> Result<()> {
        let request = UpdateSubjectRequest {
            project_id: self.project.clone(),
            id: subject.to_owned(),
            changes: Some(SubjectInput { identifier: "2.0".into(), ..SubjectInput::default() }),
            fields: vec!["Identifier".to_owned()],
            ..UpdateSubjectRequest::default()
        };
        SubjectServiceClient::new(self.catalog.clone())
            .update_subject(self.user.call(request))
            .await?;
        Ok(())
    }

    pub(crate) async fn delete_environment(&self, environment: &str) -> Result<()> {
        let request = DeleteEnvironmentRequest {
            project_id: self.project.clone(),
            id: environment.to_owned(),
        };
        EnvironmentServiceClient::new(self.catalog.clone())
            .delete_environment(self.user.call(request))
            .await?;
        Ok(())
    }

    /// Includes a test case whose plan has a secret variable and an automation step.
    pub(crate) async fn include_automated(&self, identifier: &str, secret: &str) -> Result<()> {
        let case = TestCaseInput {
            identifier: Some(identifier.to_owned()),
            name: format!("Test of {identifier}"),
            ..TestCaseInput::default()
        };
        let case = CreateTestCaseRequest { test_case: Some(case), ..Default::default() };
        let request =
            BatchCreateTestCasesRequest { project_id: self.project.clone(), requests: vec![case] };
        let mut created = TestCaseServiceClient::new(self.catalog.clone())
            .batch_create_test_cases(self.user.call(request))
            .await?
            .into_inner();
        let outcome = created.message().await?.and_then(|batch| batch.items.into_iter().next());
        let case = outcome.and_then(|outcome| outcome.test_case).context("no test case")?;
        let input =
            TestPlanInput { variables: vec![variable("PIN", secret)], ..TestPlanInput::default() };
        let plan = self.create_plan(&case.id, input).await?;
        let step =
            AutomationStepInput { test_input: "Knock".into(), ..AutomationStepInput::default() };
        let request = ReplaceAutomationStepsRequest {
            project_id: self.project.clone(),
            test_case_id: case.id.clone(),
            test_plan_id: plan.clone(),
            steps: vec![step],
            ..ReplaceAutomationStepsRequest::default()
        };
        TestPlanServiceClient::new(self.catalog.clone())
            .replace_automation_steps(self.user.call(request))
            .await?;
        self.ready(&case.id, &plan).await?;
        let request = IncludeTestCasesRequest {
            project_id: self.project.clone(),
            test_set_id: self.set.clone(),
            test_cases: vec![Reference { id: case.id }],
        };
        TestSetServiceClient::new(self.catalog.clone())
            .include_test_cases(self.user.call(request))
            .await?;
        Ok(())
    }

    async fn plan(&self, test_case: &str, instances: i32) -> Result<()> {
        let input = TestPlanInput { instances: Some(instances), ..TestPlanInput::default() };
        let plan = self.create_plan(test_case, input).await?;
        self.ready(test_case, &plan).await
    }

    async fn create_plan(&self, test_case: &str, input: TestPlanInput) -> Result<String> {
        let mut plans = TestPlanServiceClient::new(self.catalog.clone());
        let request = CreateTestPlanRequest {
            project_id: self.project.clone(),
            test_case_id: test_case.to_owned(),
            test_plan: Some(input),
        };
        Ok(plans.create_test_plan(self.user.call(request)).await?.into_inner().id)
    }

    async fn ready(&self, test_case: &str, plan: &str) -> Result<()> {
        let mut plans = TestPlanServiceClient::new(self.catalog.clone());
        let mut changes = TestPlanInput::default();
        changes.set_status(PlanStatus::ReadyForExecution);
        let request = UpdateTestPlanRequest {
            project_id: self.project.clone(),
            test_case_id: test_case.to_owned(),
            id: plan.to_owned(),
            data_version: None,
            changes: Some(changes),
            fields: vec!["Status".to_owned()],
        };
        plans.update_test_plan(self.user.call(request)).await?;
        Ok(())
    }
}

fn variable(name: &str, secret: &str) -> VariableInput {
    VariableInput {
        name: name.into(),
        is_secured: true,
        content: secret.into(),
        ..VariableInput::default()
    }
}
