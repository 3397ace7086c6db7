//! Tests of pages of ReportPortal, in the form of version 5.

use serde_json::json;

use crate::source::tests::{column, convert_all};

#[test]
fn launches_become_executions_and_retries_attempts() {
    let launches = json!({"content": [{
        "id": 12, "uuid": "u", "name": "Nightly", "number": 3, "mode": "DEFAULT", "owner": "ada",
        "startTime": "2026-03-02T09:00:00.000Z", "endTime": 1_772_443_804_000_i64, "status": "FAILED",
        "attributes": [{"key": "build", "value": "2.4"}, {"key": null, "value": "smoke"},
            {"key": "agent", "value": "x", "system": true}],
    }], "page": {"number": 1, "size": 20, "totalElements": 1, "totalPages": 1}});
    let items = json!({"content": [
        {"id": 1, "launchId": 12, "type": "SUITE", "name": "Shop", "hasChildren": true, "hasStats": true,
         "status": "FAILED", "startTime": 1_772_443_800_000_i64},
        {"id": 2, "launchId": 12, "type": "STEP", "name": "pays", "hasChildren": false, "hasStats": true,
         "codeRef": "shop.py:Shop.pays", "testCaseId": "shop.py:Shop.pays[card]", "status": "PASSED",
         "startTime": 1_772_443_802_000_i64, "endTime": 1_772_443_803_000_i64,
         "retries": [{"id": 3, "name": "pays", "status": "FAILED", "startTime": 1_772_443_801_000_i64,
            "endTime": 1_772_443_802_000_i64, "description": "no bank"}]},
        {"id": 4, "launchId": 12, "type": "STEP", "name": "Ships", "codeRef": "shop.robot:7", "hasStats": true,
         "status": "FAILED", "startTime": "2026-03-02T09:30:04Z",
         "pathNames": {"launchPathName": {"name": "Nightly", "number": 3},
            "itemPaths": [{"id": 1, "name": "Shop"}]},
         "issue": {"issueType": "pb001", "comment": "known", "externalSystemIssues": [{"ticketId": "SHOP-9"}]}},
        {"id": 5, "launchId": 12, "type": "STEP", "name": "nested", "hasStats": false, "status": "PASSED"},
        {"id": 6, "launchId": 12, "type": "BEFORE_METHOD", "name": "set up", "hasStats": true, "status": "PASSED"},
    ], "page": {"number": 1}});

    let files = [("a.json", items.to_string()), ("b.json", launches.to_string())];
    let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let converted = convert_all(&files).unwrap();

    let [run] = &converted.executions[..] else { panic!("several executions") };
    assert_eq!((&run["Key"], &run["TestSetName"]), (&"reportportal-12".into(), &"Nightly".into()));
    assert_eq!((&run["Tags"], &run["Build"]), (&"build:2.4, smoke".into(), &"2.4".into()));
    assert_eq!(run["RequestTime"], "2026-03-02T09:00:00.000000Z");
    let results = &converted.results[0];
    assert_eq!(
        column(results, "Identifier"),
        ["shop.py:Shop.pays[card]", "shop.py:Shop.pays[card]", "Shop/Ships"]
    );
    assert_eq!(column(results, "Attempt"), ["", "2", ""]);
    assert_eq!(column(results, "Result"), ["Failed", "Passed", "Failed"]);
    assert_eq!(results[0]["Steps"][0]["ActualResult"], "no bank");
    assert_eq!(results[2]["Steps"][0]["ActualResult"], "known");
}

#[test]
fn launches_that_have_not_ended_or_are_for_debugging_are_left_out() {
    let launch = |id: i64, status: &str, mode: &str| {
        json!({"id": id, "name": "Nightly", "number": id, "mode": mode, "status": status,
            "startTime": 1_772_443_800_000_i64})
    };
    let launches = json!([
        launch(1, "IN_PROGRESS", "DEFAULT"),
        launch(2, "PASSED", "DEBUG"),
        launch(3, "PASSED", "DEFAULT"),
    ]);
    let item = |launch: i64| {
        json!({"id": 10 + launch, "launchId": launch, "type": "STEP", "name": "pays", "codeRef": "pays",
            "hasStats": true, "status": "PASSED"})
    };
    let items = json!([item(1), item(2), item(3)]);
    let files = [("a.json", items.to_string()), ("b.json", launches.to_string())];
    let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let converted = convert_all(&files).unwrap();

    assert_eq!(column(&converted.executions, "Key"), ["reportportal-3"]);
}

#[test]
fn a_launch_that_failed_is_not_green() {
    let launch = |id: i64, status: &str| {
        json!({"id": id, "name": "Nightly", "number": id, "mode": "DEFAULT", "status": status,
            "startTime": 1_772_443_800_000_i64 + id, "endTime": 1_772_443_804_000_i64})
    };
    let launches =
        [launch(1, "FAILED"), launch(2, "FAILED"), launch(3, "PASSED"), launch(4, "FAILED")];
    let item = |launch: i64, kind: &str, name: &str, status: &str| {
        json!({"id": launch, "launchId": launch, "type": kind, "name": name, "codeRef": name,
            "hasStats": true, "status": status, "startTime": 1_772_443_802_000_i64,
            "pathNames": {"itemPaths": [{"name": "Shop"}, {"name": "Cart"}]}})
    };
    let mut retried = item(4, "STEP", "pays", "PASSED");
    retried["retries"] = json!([{"id": 5, "status": "FAILED", "startTime": 1_772_443_801_000_i64}]);
    let items = [
        item(1, "AFTER_CLASS", "close", "FAILED"),
        item(1, "BEFORE_CLASS", "open", "PASSED"),
        item(1, "STEP", "pays", "PASSED"),
        item(2, "STEP", "pays", "PASSED"),
        item(3, "STEP", "pays", "WARN"),
        retried,
    ];
    let [launches, items] = [json!(launches), json!(items)].map(|records| records.to_string());
    let files = [("items.json", items.as_str()), ("launches.json", launches.as_str())];
    let converted = convert_all(&files).unwrap();

    let results = |run: usize| {
        let results = &converted.results[run];
        column(results, "Identifier").into_iter().zip(column(results, "Result")).collect::<Vec<_>>()
    };
    let pair = |identifier: &str, result: &str| (identifier.to_owned(), result.to_owned());
    assert_eq!(results(0), [pair("Shop > Cart.close", "Failed"), pair("pays", "Passed")]);
    assert_eq!(results(1), [pair("pays", "Passed"), pair("Test run", "Failed")]);
    let entry = &converted.results[1][1];
    let text = "The launch failed, but none of its tests did.";
    assert_eq!(entry["Steps"][0]["ActualResult"], text);
    assert_eq!(results(2), [pair("pays", "Canceled")]);
    let retried = [pair("pays", "Failed"), pair("pays", "Passed"), pair("Test run", "Failed")];
    assert_eq!(results(3), retried, "an attempt before the last one explains nothing");
}

#[test]
fn tests_are_identified_as_in_launches_that_are_reported_to_assay() {
    let item = |id: i64, case: &str, code: &str, parameter: &str| {
        json!({"id": id, "launchId": 1, "type": "STEP", "name": "pays", "hasStats": true, "status": "PASSED",
            "testCaseId": case, "codeRef": code, "parameters": [{"key": "card", "value": parameter}],
            "pathNames": {"itemPaths": [{"name": "Shop"}]}})
    };
    let items = json!([
        item(1, "", "shop.Cart.pays", "visa"),
        item(2, "SHOP-7", "shop.Cart.pays", "visa"),
        item(3, "shop.robot:7", "shop.robot:7", "visa"),
        item(4, "shop.robot:7[visa]", "shop.robot:7", "visa"),
    ]);
    let converted = convert_all(&[("items.json", &items.to_string())]).unwrap();

    let identifiers = column(&converted.results[0], "Identifier");
    assert_eq!(identifiers, ["shop.Cart.pays[visa]", "SHOP-7", "Shop/pays", "Shop/pays"]);
}

#[test]
fn a_broken_file_is_refused_with_its_line() {
    let page = "{\"content\": [\n{\"launchId\": 1, \"hasStats\": true},\n{\"launchId\": }]}";
    let error = format!("{:#}", convert_all(&[("items.json", page)]).err().unwrap());
    assert!(error.contains("items.json is not valid JSON") && error.contains("line 3"), "{error}");
}
