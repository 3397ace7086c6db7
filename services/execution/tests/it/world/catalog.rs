//! What a test needs of the catalog.

use anyhow::Result;
use assay_proto::{
    PlanStatus,
    catalog::{
        AdoptTestCasesRequest, CreateProjectRequest, CreateTestPlanRequest, CreateTestSetRequest,
        ProjectInput, ReportedTestCase, TakeSnapshotRequest, TestPlanInput, TestSetInput,
        UpdateTestPlanRequest, project_service_client::ProjectServiceClient,
        snapshot_service_client::SnapshotServiceClient,
        test_plan_service_client::TestPlanServiceClient,
        test_set_service_client::TestSetServiceClient,
    },
};
use futures::stream;

use crate::world::World;

impl World {
    /// Makes a project with an empty test set.
    pub(super) async fn project_with_set(&self) -> Result<(String, String)> {
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

    /// Includes test cases in the set, each with a ready plan of so many instances.
    pub(crate) async fn include(&self, cases: &[(&str, i32)]) -> Result<()> {
        let target = TakeSnapshotRequest {
            project_id: self.project.clone(),
            test_set_id: self.set.clone(),
            ..TakeSnapshotRequest::default()
        };
        let named = |(identifier, _): &(&str, i32)| ReportedTestCase {
            identifier: (*identifier).to_owned(),
            name: format!("Test of {identifier}"),
        };
        let request = AdoptTestCasesRequest {
            target: Some(target),
            test_cases: cases.iter().map(named).collect(),
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

    async fn plan(&self, test_case: &str, instances: i32) -> Result<()> {
        let mut plans = TestPlanServiceClient::new(self.catalog.clone());
        let input = TestPlanInput { instances: Some(instances), ..TestPlanInput::default() };
        let request = CreateTestPlanRequest {
            project_id: self.project.clone(),
            test_case_id: test_case.to_owned(),
            test_plan: Some(input),
        };
        let plan = plans.create_test_plan(self.user.call(request)).await?.into_inner();
        let mut changes = TestPlanInput::default();
        changes.set_status(PlanStatus::ReadyForExecution);
        let request = UpdateTestPlanRequest {
            project_id: self.project.clone(),
            test_case_id: test_case.to_owned(),
            id: plan.id,
            data_version: None,
            changes: Some(changes),
            fields: vec!["Status".to_owned()],
        };
        plans.update_test_plan(self.user.call(request)).await?;
        Ok(())
    }
}
