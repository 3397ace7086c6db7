//! The rules of a test set for the verdict of its executions, and the default branch of a project.

use serde_json::{Value, json};

use super::records::{of, records};
use crate::customer::Customer;

#[tokio::test(flavor = "multi_thread")]
async fn the_rules_of_a_test_set_are_read_as_they_were_written() {
    let api = &Customer::new().await.api;
    let records = records(api).await;
    let set = of(&records, "test set");
    let defaults = json!({
        "MaxNewFailures": 0, "AllowKnownFailures": true, "MaxFlakyTests": null,
        "MinPassRate": null, "RequiredTestCases": [], "FlakyAfterBreaks": null,
        "LongestFlakyBreak": null, "FlakyWithinRuns": null,
    });
    assert_eq!(api.get(&set.path).await.ok()["Gate"], defaults);
    let change = json!({"Gate": {"MinPassRate": 97.5, "RequiredTestCases": ["LOGIN-1"]}});
    let changed = api.put(&set.path, change).await.ok();
    let mut expected = defaults.clone();
    expected["MinPassRate"] = json!(97.5);
    expected["RequiredTestCases"] = json!(["LOGIN-1"]);
    assert_eq!(changed["Gate"], expected);
    assert_eq!(api.put(&set.path, json!({"Tags": "a"})).await.ok()["Gate"], expected);

    for (gate, pointer) in [
        (Value::Null, "/Gate"),
        (json!([]), "/Gate"),
        (json!([1, true]), "/Gate"),
        (json!({"MaxNewFailures": -1}), "/Gate/MaxNewFailures"),
        (json!({"MaxFlakyTests": 1.5}), "/Gate/MaxFlakyTests"),
        (json!({"MinPassRate": "all"}), "/Gate/MinPassRate"),
        (json!({"MinPassRate": 101}), "/Gate/MinPassRate"),
        (json!({"RequiredTestCases": null}), "/Gate/RequiredTestCases"),
        (json!({"RequiredTestCases": ["a", ""]}), "/Gate/RequiredTestCases/1"),
    ] {
        let problem = api.put(&set.path, json!({"Gate": gate})).await.is_problem(422, "invalid");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{gate}");
    }
    assert_eq!(api.get(&set.path).await.ok()["Gate"], expected);
    assert_eq!(api.put(&set.path, json!({"Gate": {}})).await.ok()["Gate"], defaults);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_names_its_default_branch() {
    let api = &Customer::new().await.api;
    let records = records(api).await;
    let project = of(&records, "project");
    assert_eq!(api.get(&project.path).await.ok()["DefaultBranch"], "main");
    let change = json!({"DefaultBranch": "release/2.x"});
    assert_eq!(api.put(&project.path, change).await.ok()["DefaultBranch"], "release/2.x");
    for wrong in [json!(""), json!(null), json!(7), json!("x".repeat(251))] {
        let change = json!({"DefaultBranch": wrong});
        let problem = api.put(&project.path, change).await.is_problem(422, "invalid");
        assert_eq!(problem["errors"][0]["pointer"], "/DefaultBranch", "{wrong}");
    }
    assert_eq!(api.get(&project.path).await.ok()["DefaultBranch"], "release/2.x");
}
