//! The records of the interface, as far as pages show them.

mod catalog;
mod classification;
mod engine;
mod execution;
mod gate;
mod history;
mod incident;
mod monitor;
mod name;
mod outcome;
mod pool;
mod report;
mod shared;
mod time;
mod usage;

pub use self::outcome::Outcome;
pub(crate) use self::{
    catalog::*, classification::*, engine::*, execution::*, gate::*, history::*, incident::*,
    monitor::*, name::*, pool::*, report::*, shared::*, time::Time, usage::*,
};

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::Value;

    use super::*;

    /// Reads the example of a response in the documentation of the interface.
    fn read<T: DeserializeOwned>(document: &Value, path: &str) -> T {
        answer(document, path, "get")
    }

    fn answer<T: DeserializeOwned>(document: &Value, path: &str, method: &str) -> T {
        let response = &document["paths"][path][method]["responses"]["200"];
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
        let differences: Vec<Difference> = read(document, &format!("{execution}/comparison"));
        assert_eq!(differences[0].other_result, Outcome::Passed);
        let position = format!("{execution}/reports/{{testReportId}}/position");
        assert_eq!(read::<Position>(document, &position).number, Some(6));
        let runs: Vec<TestCaseRun> = read(document, &of_project("/testcases/{testCaseId}/history"));
        assert_eq!(runs[0].result, Outcome::Passed);
        let grid: Grid = read(document, &of_project("/testsets/{testSetId}/grid"));
        assert_eq!(grid.cases[0].outcomes, "PPPPF");
        let backtest = of_project("/testsets/{testSetId}/backtests");
        let backtest: Backtest = answer(document, &backtest, "post");
        assert_eq!(backtest.differences[0].replayed, VerdictState::Failed);
        let backtest = of_project("/monitors/backtests");
        let backtest: MonitorBacktest = answer(document, &backtest, "post");
        assert_eq!(backtest.actions[0].action.label(false).1, "Would have muted");
        let actions: Vec<TakenAction> =
            read(document, &of_project("/monitors/{monitorId}/actions"));
        assert_eq!(actions[0].action.label(true).1, "Muted");
        let pool: Pool = read(document, &of_project("/pools/{poolId}"));
        assert_eq!((pool.in_use, pool.values[0].contents.len()), (1, 1));
        let times: Vec<ExecutionTime> = read(document, "/api/executiontimes");
        assert_eq!((times[0].month.as_str(), times[0].executions), ("2026-11", 12));
        let statement = "/api/management/customers/current/statement";
        let statement: Statement = read(document, statement);
        assert_eq!((statement.due_days, statement.total_amount), (14.0, Some(471.47)));
        let insights: Vec<Insight> = read(document, &of_project("/insights"));
        assert_eq!(insights[0].outcomes, "PPFPPPFP");
        let incidents: Vec<IncidentEntry> = read(document, &of_project("/incidents"));
        assert_eq!(incidents[0].kind, IncidentKind::Outage);
        let incident: Incident = read(document, &of_project("/incidents/{incidentId}"));
        assert_eq!(incident.affected.len(), 1);
        let summary: Summary = read(document, &format!("{execution}/summary"));
        assert_eq!(summary.changes.new, 1);
        let verdict: Verdict = read(document, &format!("{execution}/verdict"));
        assert_eq!(verdict.state, VerdictState::Failed);
        let shared: SharedExecution = read(document, "/api/shared/{token}");
        assert_eq!(shared.verdict, VerdictState::Passed);
        let causes: Vec<Cause> = read(document, "/api/shared/{token}/failures");
        assert_eq!(causes[0].reports.len(), 1);
        let shared: SharedInstance = read(document, "/api/shared/{token}/reports/{testReportId}");
        assert_eq!(shared.last.number, 1);
        let links: Vec<ShareLink> = read(document, &format!("{execution}/shares"));
        assert_eq!(links.len(), 1);
        let instances: Vec<InstanceEntry> = read(document, INSTANCES);
        assert_eq!(instances[0].variant, "Project=firefox");
        let instance: Instance = read(document, &format!("{INSTANCES}/{{instanceId}}"));
        assert_eq!((instance.attempts[0].number, instance.last.number), (1, 2));
        assert_eq!(instance.last.steps[0].history.len(), 1);
    }
}
