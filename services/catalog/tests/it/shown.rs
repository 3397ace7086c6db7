//! A project whose records show results of executions, and the events that change them.

use assay_catalog::reactions::{execution_changed, reports_changed};
use assay_proto::{
    ExecutionId, ExecutionStatistic, ExecutionStatus, ReportStatus, ResultChange, TestReportId,
    TestResult, Timestamp,
    catalog::*,
    events::{ExecutionChanged, ReportState, ReportsChanged},
};

use crate::{user::User, world::World};

/// A project with records that show results of executions.
pub(crate) struct Shown {
    pub(crate) world: World,
    pub(crate) user: User,
    pub(crate) project: Project,
    pub(crate) case: TestCase,
    pub(crate) plan: TestPlan,
    pub(crate) set: TestSet,
    pub(crate) subject: SubjectEntry,
}

impl Shown {
    pub(crate) async fn start() -> Self {
        let world = World::start().await;
        let user = world.user().await;
        let project = user.project().await;
        let case = user.case(&project, "login").await;
        let plan = user.ready_plan(&case).await;
        let set = user.set(&project, &[&case]).await;
        let subject = user.subject(&project).await;
        Self { world, user, project, case, plan, set, subject }
    }

    pub(crate) fn execution(
        &self,
        id: ExecutionId,
        revision: i64,
        status: ExecutionStatus,
    ) -> ExecutionChanged {
        let statistic = ExecutionStatistic {
            execution_id: id.to_string(),
            software_version_id: Some(self.subject.id.clone()),
            software_name: Some("Web shop".into()),
            software_version: Some("1.0".into()),
            execution_request_time: Some(time("2026-11-20T10:00:00Z")),
            test_cases_total: 4,
            test_cases_passed: 3,
            test_cases_failed: 1,
            ..ExecutionStatistic::default()
        };
        ExecutionChanged {
            execution_id: id.to_string(),
            project_id: self.project.id.clone(),
            test_set_id: self.set.id.clone(),
            action: "Completed".into(),
            status: status.into(),
            result: TestResult::Failed.into(),
            revision,
            statistic: Some(statistic),
            run_duration_in_sec: 3723.4,
            ..ExecutionChanged::default()
        }
    }

    pub(crate) fn report(
        &self,
        id: TestReportId,
        number: i32,
        revision: i64,
        result: TestResult,
    ) -> ReportState {
        ReportState {
            change: ResultChange::None.into(),
            id: id.to_string(),
            test_case_id: self.case.id.clone(),
            test_plan_id: self.plan.id.clone(),
            execution_number: number,
            result: result.into(),
            status: ReportStatus::InReview.into(),
            start_date_time: Some(time("2026-11-20T10:00:00Z")),
            finish_date_time: Some(time("2026-11-20T10:01:00Z")),
            average_duration_in_sec: 1.5,
            revision,
            ..ReportState::default()
        }
    }

    pub(crate) fn reports(
        &self,
        execution: ExecutionId,
        reports: Vec<ReportState>,
    ) -> ReportsChanged {
        ReportsChanged {
            execution_id: execution.to_string(),
            project_id: self.project.id.clone(),
            test_set_id: self.set.id.clone(),
            action: "Finished".into(),
            software_name: Some("Web shop".into()),
            software_identifier: Some("1.0".into()),
            reports,
            ..ReportsChanged::default()
        }
    }

    pub(crate) async fn apply(&self, execution: &ExecutionChanged) {
        let mut tx = assay_database::begin(&self.world.db).await.unwrap();
        execution_changed(&mut tx, self.user.identity.customer, execution).await.unwrap();
        tx.commit().await.unwrap();
    }

    pub(crate) async fn apply_reports(&self, reports: &ReportsChanged) {
        let mut tx = assay_database::begin(&self.world.db).await.unwrap();
        reports_changed(&mut tx, self.user.identity.customer, reports).await.unwrap();
        tx.commit().await.unwrap();
    }

    pub(crate) async fn project(&self) -> Project {
        let request = self.user.call(GetProjectRequest { id: self.project.id.clone() });
        self.user.projects().get_project(request).await.unwrap().into_inner()
    }
}

pub(crate) fn time(text: &str) -> Timestamp {
    serde_json::from_value(text.into()).unwrap()
}
