//! Tests of answers of Kiwi TCMS, with the fields of version 16.2.

use crate::source::tests::{column, convert_all};

const CASES: &str = r#"{"jsonrpc": "2.0", "id": 1, "result": [
 {"id": 7, "create_date": "2025-01-01T10:00:00", "is_automated": false, "script": "", "arguments": "",
  "extra_link": null, "summary": "Pay by card", "requirement": "SHOP-1", "notes": "",
  "text": "Scenario: pay\n\n1. Open the cart\n2. Pay\n   by card\n\nDone", "case_status": 2,
  "case_status__name": "CONFIRMED", "category": 1, "category__name": "Checkout", "priority": 1,
  "priority__value": "P1"},
 {"id": 8, "is_automated": true, "summary": "shop.test_ship", "text": "", "case_status": 2,
  "case_status__name": "DISABLED"}
]}"#;

const RUNS: &str = r#"[
 {"id": 4, "start_date": "2026-03-02T09:00:00", "stop_date": "2026-03-02T10:00:00", "planned_start": null,
  "summary": "Run of build 12", "notes": "", "plan": 3, "plan__name": "Nightly", "build": 2,
  "build__name": "12", "build__version": 1}
]"#;

const EXECUTIONS: &str = r#"[
 {"id": 1, "start_date": "2026-03-02T09:00:10", "stop_date": "2026-03-02T09:00:20.5", "run": 4, "case": 7,
  "case__summary": "Pay by card", "build": 2, "status": 4, "status__name": "PASSED", "tested_by": 1},
 {"id": 2, "start_date": null, "stop_date": "2026-03-02T09:01:00", "run": 4, "case": 8,
  "case__summary": "shop.test_ship", "status__name": "ERROR"},
 {"id": 3, "start_date": null, "stop_date": null, "run": 4, "case": 9, "case__summary": "Return",
  "status__name": "IDLE"},
 {"id": 4, "start_date": null, "stop_date": "2026-03-02T09:02:00", "run": 4, "case": 7,
  "case__summary": "Pay by card", "status__name": "WAIVED"}
]"#;

#[test]
fn records_of_all_files_become_one_project() {
    let files = [("1.json", EXECUTIONS), ("2.json", RUNS), ("3.json", CASES)];
    let converted = convert_all(&files).unwrap();

    assert_eq!(column(&converted.cases, "Identifier"), ["KIWI-7", "shop.test_ship"]);
    assert_eq!(column(&converted.cases, "Archived"), ["false", "true"]);
    let steps = converted.cases[0]["TestPlans"][0]["AutomationSteps"].as_array().unwrap();
    let inputs: Vec<_> = steps.iter().map(|step| step["TestInput"].as_str().unwrap()).collect();
    assert_eq!(inputs, ["Open the cart", "Pay\nby card"]);
    let [run] = &converted.executions[..] else { panic!("several executions") };
    assert_eq!((&run["Key"], &run["TestSetName"]), (&"kiwi-4".into(), &"Nightly".into()));
    assert_eq!((&run["Build"], &run["Tags"]), (&"12".into(), &"Run of build 12".into()));
    assert_eq!(run["CompletionDateTime"], "2026-03-02T10:00:00.000000Z");
    let results = &converted.results[0];
    assert_eq!(column(results, "Identifier"), ["KIWI-7", "shop.test_ship", "KIWI-7"]);
    assert_eq!(column(results, "Result"), ["Passed", "Error", "Passed"]);
    // Kiwi has no attempts: a second execution of a case is another instance.
    assert_eq!(column(results, "InstanceNr"), ["1", "1", "2"]);
    assert_eq!(results[0]["FinishDateTime"], "2026-03-02T09:00:20.500000Z");
}

#[test]
fn runs_that_have_not_ended_are_left_out() {
    let open = RUNS.replace("\"2026-03-02T10:00:00\"", "null");
    let converted = convert_all(&[("1.json", EXECUTIONS), ("2.json", &open)]).unwrap();
    assert!(converted.executions.is_empty() && converted.sets.is_empty());

    // Planned times do not count, and an end in the future is not imported.
    let planned =
        RUNS.replace("\"planned_start\": null", "\"planned_start\": \"2999-01-01T00:00:00\"");
    let converted = convert_all(&[("2.json", &planned.replace("2026-03-02T10", "2999-03-02T10"))]);
    let executions = converted.unwrap().executions;
    assert_eq!(column(&executions, "RequestTime"), ["2026-03-02T09:00:00.000000Z"]);
    assert!(
        column(&executions, "CompletionDateTime")[0].as_str() < "2999",
        "it is not in the future"
    );
}

#[test]
fn broken_files_are_refused_with_their_line() {
    for (text, expected) in [
        ("[{\"case_status\": 1,\n \"id\": 1", "line 2"),
        ("[{\"case_status\": 1, \"id\": \"x\"}]", "record 1: id: must be a number"),
    ] {
        let error = format!("{:#}", convert_all(&[("cases.json", text)]).err().unwrap());
        assert!(error.contains(expected), "{error}");
    }
}
