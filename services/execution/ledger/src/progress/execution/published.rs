//! The state of an execution as events publish it.

use assay_auth::actor;
use assay_events::{ExecutionAction, ReportsAction};
use assay_proto::events::{ExecutionChanged, ReportState, ReportsChanged};

use super::ExecutionState;

/// Maximum number of reports in an event. JetStream accepts messages of up to 1 MiB.
const REPORTS_IN_EVENT: usize = 500;

impl ExecutionState {
    /// Returns the event that `action` has happened to the execution.
    pub fn event(&self, action: ExecutionAction) -> ExecutionChanged {
        ExecutionChanged {
            execution_id: self.execution.id.clone(),
            project_id: self.execution.project_id.clone(),
            test_set_id: self.execution.test_set_id.clone(),
            action: action.name().to_owned(),
            status: self.execution.status,
            result: self.execution.result,
            revision: self.revision,
            statistic: Some(self.statistic.clone()),
            run_duration_in_sec: self.duration_in_sec(),
            requested_by_id: Some(self.requested_by_id.clone()),
            test_set_name: Some(self.execution.test_set_name.clone()),
            failed_test_cases: Vec::new(),
            tags: self.execution.tags.clone(),
            branch: self.execution.branch.clone(),
            commit: self.execution.commit.clone(),
            build: self.execution.build.clone(),
            ci_url: self.execution.ci_url.clone(),
            is_past: self.is_past().then_some(true),
            actor: Some(actor::current()),
            first_failure: self.first_failure.clone(),
            ..ExecutionChanged::default()
        }
    }

    /// Returns the data of the events that `action` has happened to reports.
    pub fn reports_changed<'e>(
        &'e self,
        action: ReportsAction,
        reports: &'e [ReportState],
    ) -> impl Iterator<Item = ReportsChanged> + 'e {
        let execution = &self.execution;
        reports.chunks(REPORTS_IN_EVENT).map(move |reports| ReportsChanged {
            execution_id: execution.id.clone(),
            project_id: execution.project_id.clone(),
            test_set_id: execution.test_set_id.clone(),
            action: action.name().to_owned(),
            software_name: execution.software_name.clone(),
            software_identifier: execution.software_version.clone(),
            reports: reports.to_vec(),
            is_past: self.is_past().then_some(true),
            actor: Some(actor::current()),
            test_set_name: Some(execution.test_set_name.clone()),
            branch: execution.branch.clone(),
            commit: execution.commit.clone(),
            build: execution.build.clone(),
            ci_url: execution.ci_url.clone(),
        })
    }
}
