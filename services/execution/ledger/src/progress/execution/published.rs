//! The state of an execution as events publish it.

use assay_auth::actor;
use assay_events::{ExecutionAction, ReportsAction};
use assay_proto::events::{ExecutionChanged, ReportState, ReportsChanged};
use assay_rpc::parts::bounded;

use super::ExecutionState;

/// Maximum number of reports in an event. JetStream accepts messages of up to 1 MiB. There are fewer if the
/// identifiers of their test cases are long.
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
        parts(reports).map(move |reports| ReportsChanged {
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

/// Splits reports into those of one event each.
fn parts(reports: &[ReportState]) -> impl Iterator<Item = &[ReportState]> {
    // A character may take six bytes in JSON, and the rest of a report about 400.
    let texts = |report: &ReportState| {
        let owners: usize = report.owners.iter().map(String::len).sum();
        3 * (report.test_case_identifier().len() + owners)
    };
    reports.chunks(REPORTS_IN_EVENT).flat_map(move |part| bounded(part, texts))
}

#[cfg(test)]
mod tests {
    use assay_proto::{ReportStatus, ResultChange, TestReportId, TestResult, Timestamp};

    use super::*;

    #[test]
    fn an_event_of_reports_with_long_identifiers_is_one_that_nats_accepts() {
        for (identifier, owners, expected) in [
            ("shop.pays".to_owned(), 0, Some(3)),
            ("\u{1}".repeat(255), 0, None),
            ("😀".repeat(255), 10, None),
        ] {
            let id = TestReportId::new().to_string();
            let report = ReportState {
                id: id.clone(),
                test_case_id: id.clone(),
                test_plan_id: id,
                execution_number: i32::MAX,
                result: TestResult::NotExecuted.into(),
                status: ReportStatus::EngineExecutionFailure.into(),
                start_date_time: Some(Timestamp::default()),
                finish_date_time: Some(Timestamp::default()),
                average_duration_in_sec: 1.0 / 3.0,
                revision: i64::MAX,
                owners: vec![identifier.clone(); owners],
                test_case_identifier: Some(identifier),
                is_muted: Some(false),
                change: ResultChange::None.into(),
            };
            let reports = vec![report; 1200];
            let parts: Vec<_> = parts(&reports).collect();
            assert!(expected.is_none_or(|expected| parts.len() == expected), "{}", parts.len());
            for part in &parts {
                let size = serde_json::to_string(part).unwrap().len();
                assert!(size < 700 << 10, "{size}");
            }
            assert_eq!(parts.concat(), reports);
        }
    }
}
