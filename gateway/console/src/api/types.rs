//! The records of the interface, as far as pages show them.

mod execution;
mod outcome;
mod report;

use chrono::{DateTime, Utc};
use serde::Deserialize;

pub(crate) use self::{execution::*, outcome::Outcome, report::*};

pub(crate) type Time = DateTime<Utc>;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Project {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TestSetEntry {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) last_execution_statistic: Option<Statistic>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TestSet {
    pub(crate) name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TestCase {
    pub(crate) id: String,
    pub(crate) project_id: String,
    pub(crate) name: String,
    pub(crate) identifier: String,
    pub(crate) description: Option<String>,
}

/// A test case as an entry of a list.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TestCaseEntry {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) identifier: String,
    pub(crate) last_result: Option<Outcome>,
    /// Its latest results, newest first.
    pub(crate) execution_statistics: Vec<CaseStatistic>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct CaseStatistic {
    pub(crate) result: Outcome,
    pub(crate) average_duration_in_sec: f64,
}

/// A result of a test case.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TestCaseRun {
    pub(crate) id: String,
    pub(crate) request_time: Time,
    pub(crate) result: Outcome,
    pub(crate) status: String,
    pub(crate) total_duration_in_sec: f64,
    pub(crate) software_name: Option<String>,
    pub(crate) software_version: Option<String>,
    pub(crate) environment_name: Option<String>,
    pub(crate) flakiness_score: f64,
    pub(crate) is_flaky: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Grid {
    pub(crate) executions: Vec<GridExecution>,
    pub(crate) cases: Vec<GridCase>,
    pub(crate) next_cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct GridExecution {
    pub(crate) id: String,
    pub(crate) request_time: Time,
    pub(crate) result: Outcome,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct GridCase {
    pub(crate) test_case_id: String,
    pub(crate) test_case_identifier: String,
    pub(crate) test_case_name: String,
    pub(crate) outcomes: String,
}

/// A test case that needs attention.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Insight {
    pub(crate) test_case_id: String,
    pub(crate) test_case_identifier: String,
    pub(crate) test_case_name: String,
    pub(crate) runs: i64,
    pub(crate) failures: i64,
    pub(crate) flaky_runs: i64,
    pub(crate) recoveries: i64,
    pub(crate) average_duration_in_sec: f64,
    pub(crate) last_execution_id: String,
    pub(crate) last_run: Time,
    pub(crate) outcomes: String,
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::Value;

    use super::*;

    /// Reads the example of a response in the documentation of the interface.
    fn read<T: DeserializeOwned>(document: &Value, path: &str) -> T {
        let response = &document["paths"][path]["get"]["responses"]["200"];
        let example = response["content"]["application/json"]["example"].clone();
        serde_json::from_value(example).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    #[test]
    fn records_are_those_of_the_documentation() {
        const PROJECT: &str = "/api/projects/{projectId}";
        const REPORT: &str = "/api/projects/0/testcases/0/testplans/0/testreports/{testReportId}";
        const INSTANCES: &str = "/api/projects/{projectId}/testcases/{testCaseId}/testplans\
            /{testPlanId}/testreports/{testReportId}/instances";
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
        let file = std::fs::read_to_string(file).unwrap();
        let document = &serde_json::from_str(&file).unwrap();
        let of_project = |rest: &str| format!("{PROJECT}{rest}");

        read::<Project>(document, PROJECT);
        read::<TestSet>(document, "/api/projects/0/testsets/{testSetId}");
        read::<Report>(document, REPORT);
        let case = read::<TestCase>(document, "/api/projects/0/testcases/{testCaseId}");
        assert!(!case.identifier.is_empty());
        let entries: Vec<TestCaseEntry> = read(document, &of_project("/testcases"));
        assert_eq!(entries[0].execution_statistics.len(), 1);
        let sets: Vec<TestSetEntry> = read(document, &of_project("/testsets"));
        assert_eq!(sets[0].last_execution_statistic.map(|statistic| statistic.total), Some(1));
        let executions: Vec<ExecutionEntry> = read(document, &of_project("/executions"));
        assert!(!executions[0].is_running());
        let execution = of_project("/executions/{executionId}");
        let causes: Vec<Cause> = read(document, &format!("{execution}/failures"));
        assert_eq!(causes[0].reports.len(), 1);
        let reports: Vec<ReportEntry> = read(document, &format!("{execution}/reports"));
        assert_eq!((reports[0].result, reports[0].history.as_str()), (Outcome::Passed, "PPPPF"));
        let runs: Vec<TestCaseRun> = read(document, &of_project("/testcases/{testCaseId}/history"));
        assert_eq!(runs[0].result, Outcome::Passed);
        let grid: Grid = read(document, &of_project("/testsets/{testSetId}/grid"));
        assert_eq!(grid.cases[0].outcomes, "PPPPF");
        let insights: Vec<Insight> = read(document, &of_project("/insights"));
        assert_eq!(insights[0].outcomes, "PPFPPPFP");
        let summary: Summary = read(document, &format!("{execution}/summary"));
        assert_eq!(summary.changes.new, 1);
        let verdict: Verdict = read(document, &format!("{execution}/verdict"));
        assert_eq!(verdict.state, "Failed");
        let instances: Vec<InstanceEntry> = read(document, INSTANCES);
        assert_eq!(instances[0].variant, "Project=firefox");
        let instance: Instance = read(document, &format!("{INSTANCES}/{{instanceId}}"));
        assert_eq!((instance.attempts[0].number, instance.last.number), (1, 2));
        assert_eq!(instance.last.steps[0].history.len(), 1);
    }
}
