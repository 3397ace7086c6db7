//! The state of executions by the interface, in the form of the rebuilt one.

use std::collections::{BTreeMap, HashMap};

use assay_testkit::Api;
use futures::{StreamExt, stream};
use serde_json::{Value, json};

use crate::world::id;

/// Number of executions that are read at once.
const AT_ONCE: usize = 8;

/// How an execution has ended, as far as trends depend on it.
#[derive(Clone, Copy)]
struct Standing {
    has_passed: bool,
    has_failures: bool,
    has_new_failures: bool,
}

impl Standing {
    /// Reads it from an execution and its verdict. One that was canceled, or in which no test case ran, has none.
    fn of(execution: &Value, verdict: &Value) -> Option<Self> {
        let count = |field: &str| execution["Statistic"][field].as_i64().unwrap();
        let failed = ["TestCasesFailed", "TestCasesWithError", "TestCasesAborted"];
        let failures: i64 = failed.into_iter().map(count).sum();
        let has_run = count("TestCasesPassed") + failures > 0;
        (execution["Status"] == "Completed" && has_run).then(|| Self {
            has_passed: verdict["State"] == "Passed",
            has_failures: failures > 0,
            has_new_failures: verdict["NewFailures"] != json!([]),
        })
    }

    fn is_fine(self) -> bool {
        self.has_passed && !self.has_failures
    }

    /// Returns the trend after another execution of the series, in the words of the documents. None of these
    /// executions is an outage, and nothing is muted.
    fn trend(self, before: Option<Self>) -> &'static str {
        let is_worse = self.has_new_failures
            || match before {
                Some(before) => {
                    before.has_passed && !self.has_passed
                        || self.has_failures && !before.has_failures
                }
                None => !self.has_passed,
            };
        match before {
            _ if is_worse => "Worse",
            Some(before) if self.is_fine() && !before.is_fine() => "Better",
            _ => "Same",
        }
    }
}

/// Returns the executions of a project by their ids. Each test set is one series, of one execution at a time.
pub(super) async fn executions(api: &Api, project: &str) -> BTreeMap<String, Value> {
    let all = api.get(&format!("{project}/executions")).await.ok();
    let ids = all.as_array().unwrap().iter().map(|one| id(one).to_owned());
    let read: Vec<_> = ids.map(|id| execution(api, project, id)).collect();
    let mut read: Vec<_> = stream::iter(read).buffer_unordered(AT_ONCE).collect().await;
    // Ids have the order of the requests.
    read.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    let mut last = HashMap::<String, Standing>::new();
    let with_trend = read.into_iter().map(|(id, mut execution, standing)| {
        let set = execution["TestSetId"].as_str().unwrap().to_owned();
        let trend = standing.map(|now| now.trend(last.insert(set, now)));
        execution["Trend"] = json!(trend);
        (id, execution)
    });
    with_trend.collect()
}

/// Returns an execution with its id and its standing.
async fn execution(api: &Api, project: &str, id: String) -> (String, Value, Option<Standing>) {
    let at = format!("{project}/executions/{id}");
    let (execution, verdict) =
        (api.get(&at).await.ok(), api.get(&format!("{at}/verdict")).await.ok());
    let reports = execution["TestReports"].as_array().unwrap().iter().map(|report| {
        let state = json!({
            "Status": report["Status"], "Result": report["Result"], "Change": report["Change"],
            "TestCaseIdentifier": report["TestCaseIdentifier"],
        });
        (self::id(report).to_owned(), state)
    });
    let reports: BTreeMap<String, Value> = reports.collect();
    let mut changes = verdict["Changes"].clone();
    // A review changes it after the end.
    changes["Unreviewed"] = Value::Null;
    let shown = json!({
        "Status": execution["Status"], "Result": execution["Result"], "Verdict": verdict["State"],
        "Statistic": execution["Statistic"], "Changes": changes, "Url": execution["Url"],
        "TestSetId": execution["TestSetId"], "Reports": reports,
    });
    let standing = Standing::of(&execution, &verdict);
    (id, shown, standing)
}
