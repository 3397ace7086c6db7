//! Test reports with their instances and steps.

use serde::Deserialize;

use super::{
    classification::Classification,
    name::{ReportStatus, ResultChange},
    outcome::Outcome,
    time::Time,
};

/// A test report as an entry of a list.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ReportEntry {
    pub(crate) id: String,
    pub(crate) test_case_identifier: String,
    pub(crate) test_case_name: String,
    pub(crate) result: Outcome,
    /// Empty for readers of a share link, as the other fields with a default are.
    #[serde(default)]
    pub(crate) status: ReportStatus,
    pub(crate) change: ResultChange,
    /// Empty for readers of a share link.
    #[serde(default)]
    pub(crate) change_reason: String,
    pub(crate) attempts: i64,
    pub(crate) duration_in_sec: f64,
    pub(crate) headline: String,
    #[serde(default)]
    pub(crate) history: String,
    pub(crate) failing_since: Option<Time>,
    pub(crate) is_muted: bool,
    pub(crate) is_flaky: bool,
    #[serde(default)]
    pub(crate) ticket: String,
    pub(crate) comment: Option<String>,
    #[serde(default)]
    pub(crate) data_version: String,
    #[serde(flatten)]
    pub(crate) review: Review,
}

/// The position of a test report in a list.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Position {
    /// None if the list does not have it.
    pub(crate) number: Option<i64>,
    pub(crate) total: i64,
    pub(crate) reviewed: i64,
    pub(crate) previous_id: Option<String>,
    pub(crate) next_id: Option<String>,
}

/// The last review of a test report; empty before the first one, and for readers of a share link.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Review {
    pub(crate) reviewed_by: Option<String>,
    pub(crate) review_time: Option<Time>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Report {
    pub(crate) id: String,
    pub(crate) project_id: String,
    pub(crate) execution_id: String,
    pub(crate) test_set_id: String,
    pub(crate) test_set_name: String,
    pub(crate) request_time: Time,
    pub(crate) test_case_id: String,
    pub(crate) test_plan_id: String,
    pub(crate) test_case_identifier: String,
    pub(crate) test_case_name: String,
    pub(crate) comment: Option<String>,
    pub(crate) result: Outcome,
    pub(crate) status: ReportStatus,
    pub(crate) change: ResultChange,
    /// Empty for readers of a share link.
    #[serde(default)]
    pub(crate) change_reason: String,
    pub(crate) total_duration_in_sec: f64,
    pub(crate) subject_name: Option<String>,
    pub(crate) subject_identifier: Option<String>,
    pub(crate) environment_id: Option<String>,
    pub(crate) environment_name: Option<String>,
    pub(crate) branch: Option<String>,
    pub(crate) is_flaky: bool,
    pub(crate) is_muted: bool,
    pub(crate) ticket: String,
    pub(crate) data_version: String,
    /// Id of the last review, if it can be taken back.
    pub(crate) review_id: Option<String>,
    #[serde(flatten)]
    pub(crate) review: Review,
    #[serde(flatten)]
    pub(crate) classification: Classification,
}

impl Report {
    /// Returns whether the test has ended, so that its result can be judged.
    pub(crate) fn is_finished(&self) -> bool {
        self.status.is_finished()
    }

    /// Returns the path of the instances.
    pub(crate) fn instances(&self) -> String {
        let Self { project_id, test_case_id, test_plan_id, id, .. } = self;
        format!(
            "/api/projects/{project_id}/testcases/{test_case_id}/testplans/{test_plan_id}\
             /testreports/{id}/instances"
        )
    }
}

#[cfg(test)]
impl Report {
    /// A report of a test that passed, without a branch and an environment.
    pub(crate) fn example() -> Self {
        serde_json::from_value(serde_json::json!({
            "Id": "r", "ProjectId": "p", "ExecutionId": "e", "TestSetId": "s", "TestSetName": "Nightly",
            "RequestTime": "2026-03-01T00:00:00Z", "TestCaseId": "c", "TestPlanId": "t",
            "TestCaseIdentifier": "pays", "TestCaseName": "pays", "Result": "Passed",
            "Status": "InReview", "Change": "None", "TotalDurationInSec": 0, "EnvironmentId": "",
            "IsFlaky": false, "IsMuted": false, "Ticket": "", "DataVersion": "1",
            "ReviewedBy": null, "ReviewTime": null, "Suites": [], "Labels": [], "Links": [],
        }))
        .unwrap()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct InstanceEntry {
    pub(crate) id: String,
    pub(crate) instance_nr: i64,
    pub(crate) duration_in_sec: f64,
    pub(crate) result: Outcome,
    pub(crate) variant: String,
    /// Number of the last attempt.
    pub(crate) attempt: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Instance {
    pub(crate) id: String,
    /// Earlier attempts.
    pub(crate) attempts: Vec<Attempt>,
    /// The last attempt.
    #[serde(flatten)]
    pub(crate) last: Attempt,
}

/// One attempt at an instance.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Attempt {
    #[serde(rename = "Attempt")]
    pub(crate) number: i64,
    pub(crate) duration_in_sec: f64,
    pub(crate) result: Outcome,
    #[serde(default)]
    pub(crate) artifacts_uri: String,
    #[serde(default)]
    pub(crate) report_uri: String,
    #[serde(default)]
    pub(crate) debug_log_uri: String,
    #[serde(default)]
    pub(crate) execution_log_uri: String,
    #[serde(default)]
    pub(crate) installation_log_uri: String,
    pub(crate) steps: Vec<Step>,
}

impl Attempt {
    /// Returns the attempt with a number, or else the decisive one: the first that failed if the
    /// last one passed, otherwise the last one.
    pub(crate) fn chosen<'a>(
        earlier: &'a [Self],
        last: &'a Self,
        number: Option<&str>,
    ) -> &'a Self {
        let number = number.and_then(|number| number.parse().ok());
        let asked = earlier.iter().chain([last]).find(|attempt| Some(attempt.number) == number);
        let failed = || earlier.iter().find(|attempt| attempt.result.is_failure());
        asked.or_else(|| failed().filter(|_| !last.result.is_failure())).unwrap_or(last)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Step {
    #[serde(rename = "StepNr")]
    pub(crate) number: i64,
    pub(crate) duration_in_sec: f64,
    pub(crate) test_input: String,
    pub(crate) actual_result: String,
    pub(crate) expected_result: String,
    pub(crate) result: Outcome,
    pub(crate) screenshots: Vec<String>,
    #[serde(default)]
    pub(crate) thumbnail: String,
    #[serde(default)]
    pub(crate) history: Vec<StepRun>,
    pub(crate) soft_verification: Vec<String>,
}

/// A result of the same step before.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct StepRun {
    pub(crate) result: Outcome,
}

/// A test case that a cause has made fail.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct FailureMatch {
    pub(crate) test_case_id: String,
    pub(crate) test_case_name: String,
    pub(crate) executions: i64,
    pub(crate) last_seen: Time,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failed_attempt_of_a_flaky_test_is_shown() {
        let attempt = |(number, result): (i64, &str)| -> Attempt {
            serde_json::from_value(serde_json::json!({
                "Attempt": number, "DurationInSec": 1.0, "Result": result, "Steps": [],
            }))
            .unwrap()
        };
        for (results, number, expected) in [
            (["Aborted", "Failed", "Passed"], None, 2),
            (["Aborted", "Failed", "Passed"], Some("3"), 3),
            (["Failed", "Failed", "Failed"], None, 3),
            (["Passed", "Passed", "Passed"], None, 3),
            (["Failed", "Failed", "Passed"], Some("2"), 2),
            (["Failed", "Passed", "Passed"], Some("9"), 1),
        ] {
            let attempts: Vec<_> = (1..).zip(results).map(attempt).collect();
            let (last, earlier) = attempts.split_last().unwrap();
            assert_eq!(Attempt::chosen(earlier, last, number).number, expected, "{results:?}");
        }
    }
}

/// A part of the log of a test that runs.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct LiveLog {
    pub(crate) engine: String,
    pub(crate) offset: i64,
    pub(crate) text: String,
    pub(crate) is_running: bool,
}
