//! Backups, with the commands of `docs/operations.md`.

mod commands;
mod dumps;
mod point_in_time;

use assay_testkit::{Api, eventually};
use serde_json::{Value, json};

use crate::{
    fleet::Fleet,
    junit::upload,
    world::{create_project, id},
};

pub(crate) const PASSED: &str = r#"<testsuite><testcase name="pays"/></testsuite>"#;
pub(crate) const FAILED: &str =
    r#"<testsuite><testcase name="pays"><failure message="no"/></testcase></testsuite>"#;

/// A project with a test set.
struct Shop {
    project: String,
    set: String,
}

impl Shop {
    async fn open(api: &Api) -> Self {
        let project = create_project(api).await;
        let set = api.post(&format!("{project}/testsets"), json!({"Name": "All"})).await.created();
        let set = format!("{project}/testsets/{}", id(&set));
        Self { project, set }
    }

    /// Uploads a report of its only test; returns the execution.
    async fn report(&self, api: &Api, report: &str) -> Value {
        let uploaded = upload(api, &self.set, report).await.created();
        api.get(&format!("{}/executions/{}", self.project, id(&uploaded))).await.ok()
    }

    /// The ids of all executions, newest first.
    async fn executions(&self, api: &Api) -> Vec<String> {
        let listed = api.get(&format!("{}/executions", self.project)).await.ok();
        listed.as_array().unwrap().iter().map(|one| id(one).to_owned()).collect()
    }

    /// Waits until the catalog shows an execution as the latest one, with the result of its test.
    async fn shows(&self, api: &Api, execution: &str, result: &str) {
        eventually("the catalog to show the latest execution", || async {
            let set = api.get(&self.set).await.ok();
            let is_latest = set["LastExecutionStatistic"]["ExecutionId"] == execution;
            (is_latest && set["TestCases"][0]["LastResult"] == result).then_some(())
        })
        .await;
    }

    /// Asserts that each record of a new execution is notified once.
    async fn is_notified(&self, api: &Api, execution: &Value) {
        let report = id(&execution["TestReports"][0]);
        let about = async |id: &str, action: &str| {
            let all = api.get("/api/notifications").await.ok();
            let mut all = all.as_array().unwrap().clone();
            all.retain(|one| one["TargetId"] == id && one["Action"] == action);
            all.len()
        };
        for (id, action) in [(id(execution), "Completed"), (report, "Finished")] {
            let arrived = || async { (about(id, action).await > 0).then_some(()) };
            eventually("a notification", arrived).await;
            assert_eq!(about(id, action).await, 1, "{action}");
        }
    }
}

/// Asserts that reports which are posted after a restore are right.
async fn assert_reports_are_right(fleet: &Fleet, api: &Api, shop: &Shop, changes: [&str; 2]) {
    for (report, result, change) in [(FAILED, "Failed", changes[0]), (PASSED, "Passed", changes[1])]
    {
        let execution = shop.report(api, report).await;
        assert_eq!(execution["TestReports"][0]["Change"], change, "{execution}");
        shop.shows(api, id(&execution), result).await;
        shop.is_notified(api, &execution).await;
    }
    eventually("no differences", || async {
        let (_, output) = fleet.command(&["verify"]).await;
        output.starts_with("No differences. ").then_some(())
    })
    .await;
}
