//! Replicas whose clocks are wrong.

use assay_testkit::{Api, eventually};
use serde_json::Value;

use super::CLOCKS;
use crate::{
    fleet::Fleet,
    junit::upload,
    world::{create_project, id},
};

const FAILED: &str =
    r#"<testsuite><testcase name="pays"><failure message="no"/></testcase></testsuite>"#;
const PASSED: &str = r#"<testsuite><testcase name="pays"/></testsuite>"#;

/// Waits until the test set shows the statistic of an execution.
async fn shown(api: &Api, set: &str, execution: &str) {
    eventually("the execution to be shown", || async {
        let set = api.get(set).await.ok();
        (set["LastExecutionStatistic"]["ExecutionId"] == execution).then_some(())
    })
    .await;
}

/// One replica is six hours ahead, the other one three minutes behind.
#[tokio::test(flavor = "multi_thread")]
async fn the_order_of_executions_does_not_depend_on_the_clocks_of_replicas() {
    let fleet = Fleet::start(&CLOCKS, &[]).await;
    let [behind, ahead] = fleet.admins().await.try_into().ok().unwrap();
    let project = create_project(&behind).await;
    let set = behind.post(&format!("{project}/testsets"), serde_json::json!({"Name": "All"})).await;
    let set = format!("{project}/testsets/{}", id(&set.created()));

    let mut ids = Vec::new();
    let story = [
        (&ahead, PASSED, "None"),
        (&behind, FAILED, "New"),
        (&ahead, FAILED, "Still"),
        (&behind, FAILED, "Still"),
        (&ahead, PASSED, "Fixed"),
        (&behind, FAILED, "New"),
        (&behind, PASSED, "Fixed"),
    ];
    for (number, (api, results, change)) in story.into_iter().enumerate() {
        let uploaded = id(&upload(api, &set, results).await.created()).to_owned();
        let execution = behind.get(&format!("{project}/executions/{uploaded}")).await.ok();
        assert_eq!(execution["TestReports"][0]["Change"], change, "{number}: {execution}");
        for api in [&behind, &ahead] {
            shown(api, &set, &uploaded).await;
        }
        ids.insert(0, uploaded);
    }

    let listed = ahead.get(&format!("{project}/executions")).await.ok();
    let listed: Vec<&str> = listed.as_array().unwrap().iter().map(id).collect();
    assert_eq!(listed, ids, "newest first");
    let case = behind.get(&format!("{project}/testcases")).await.ok()[0].clone();
    assert_eq!(case["LastResult"], "Passed");
    let numbers = case["ExecutionStatistics"].as_array().map(Vec::len);
    assert_eq!(numbers, Some(ids.len()), "{case}");
    assert_eq!(behind.get(&project).await.ok()["OverallResult"], Value::from("Passed"));
    let (_, output) = fleet.command(&["verify"]).await;
    let compared = format!("executions: {}, projects: 1, customers: 1", ids.len());
    assert_eq!(output, format!("No differences. Compared {compared}\n"));
    fleet.stop().await.stop().await;
}
