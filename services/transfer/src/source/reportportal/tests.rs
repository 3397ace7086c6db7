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
fn a_broken_file_is_refused_with_its_line() {
    let page = "{\"content\": [\n{\"launchId\": 1, \"hasStats\": true},\n{\"launchId\": }]}";
    let error = format!("{:#}", convert_all(&[("items.json", page)]).err().unwrap());
    assert!(error.contains("items.json is not valid JSON") && error.contains("line 3"), "{error}");
}
