//! Tests of histories of Allure 2 and of Allure 3.14.

use crate::source::tests::{column, convert_all};

const HISTORY: &str = r#"{
 "h1": {"statistic": {"failed": 1, "total": 3}, "items": [
   {"uid": "a", "reportUrl": "https://ci.example.org/job/2/allure/#testresult/a", "status": "passed",
    "time": {"start": 1772530200000, "stop": 1772530201000, "duration": 1000}},
   {"uid": "b", "reportUrl": "https://ci.example.org/job/1/allure/#testresult/b", "status": "broken",
    "statusDetails": "no bank", "time": {"start": 1772443800000, "stop": 1772443801500, "duration": 1500}}
 ]},
 "h2": {"statistic": {"total": 2}, "items": [
   {"uid": "c", "reportUrl": "https://ci.example.org/job/2/allure/#testresult/c", "status": "skipped",
    "time": {}}
 ]}
}"#;

const NAMES: &str =
    r#"{"uuid": "u", "historyId": "h1", "name": "pays", "fullName": "shop.Shop#pays"}"#;

const LINES: &str = r#"{"uuid":"r1","name":"Nightly","timestamp":1772443900000,"knownTestCaseIds":["t1"],"testResults":{"h1":{"id":"1","name":"pays","fullName":"shop.py#pays","environment":"default","status":"failed","error":{"message":"no bank","trace":"at pays"},"start":1772443800000,"stop":1772443801000,"duration":1000,"url":"","historyId":"h1"},"h2":{"id":"2","name":"ships","environment":"firefox","status":"passed","url":""}},"metrics":{},"url":""}
{"uuid":"r2","name":"Nightly","timestamp":1772530300000,"knownTestCaseIds":[],"testResults":{},"metrics":{},"url":""}
"#;

#[test]
fn the_history_of_allure_2_becomes_an_execution_for_each_report() {
    let converted = convert_all(&[("history.json", HISTORY), ("u-result.json", NAMES)]).unwrap();

    let links = column(&converted.executions, "CiUrl");
    assert_eq!(
        links,
        ["https://ci.example.org/job/1/allure/", "https://ci.example.org/job/2/allure/"]
    );
    assert_eq!(column(&converted.results[0], "Identifier"), ["shop.Shop.pays"]);
    assert_eq!(column(&converted.results[0], "Result"), ["Error"]);
    assert_eq!(converted.results[0][0]["Steps"][0]["ActualResult"], "no bank");
    assert_eq!(column(&converted.results[1], "Identifier"), ["shop.Shop.pays", "allure-h2"]);
}

#[test]
fn runs_that_links_do_not_distinguish_are_divided_by_pauses() {
    let hour = 3_600_000;
    for (url, link) in [
        ("", ""),
        (r##""reportUrl": "#testresult/a", "##, ""),
        (r#""reportUrl": "allure/index.html", "#, ""),
        (r#""reportUrl": "http:///allure/", "#, ""),
        (r#""reportUrl": "https://ci.example.org/allure/", "#, "https://ci.example.org/allure/"),
    ] {
        let item = |start: i64| {
            let time = format!(r#""time": {{"start": {start}, "stop": {start}}}"#);
            format!(r#"{{"uid": "a", {url}"status": "passed", {time}}}"#)
        };
        let history = format!(
            r#"{{"h1": {{"statistic": {{"total": 2}}, "items": [{}, {}]}},
                "h2": {{"statistic": {{"total": 1}}, "items": [{}]}}}}"#,
            item(5 * hour),
            item(hour),
            item(hour + 60_000),
        );
        let converted = convert_all(&[("history.json", &history)]).unwrap();

        let counts: Vec<_> = converted.results.iter().map(Vec::len).collect();
        assert_eq!(counts, [2, 1], "{url}");
        assert_eq!(column(&converted.executions, "CiUrl"), [link, link]);
    }
}

#[test]
fn the_history_of_allure_3_becomes_an_execution_for_each_line() {
    let converted = convert_all(&[("history.jsonl", LINES)]).unwrap();

    assert_eq!(column(&converted.executions, "Key"), ["allure-r1", "allure-r2"]);
    assert_eq!(converted.executions[0]["TestSetName"], "Nightly");
    assert_eq!(converted.executions[0]["CompletionDateTime"], "2026-03-02T09:31:40.000000Z");
    let results = &converted.results[0];
    assert_eq!(column(results, "Identifier"), ["shop.py.pays", "ships"]);
    assert_eq!(column(results, "Variant"), ["", "Environment=firefox"]);
    assert_eq!(results[0]["Steps"][0]["ActualResult"], "no bank\nat pays");
    assert!(converted.results[1].is_empty());
    assert_eq!(converted.sets.keys().collect::<Vec<_>>(), ["Nightly"]);
}

#[test]
fn tests_are_identified_as_in_uploaded_results() {
    let line = |full: &str, name: &str| {
        format!(
            r#"{{"uuid":"r1","knownTestCaseIds":[],"testResults":{{"h":{{"name":"{name}","fullName":"{full}","status":"passed"}}}}}}"#
        )
    };
    let result = |full: &str, name: &str, framework: &str| {
        format!(
            r#"{{"uuid": "u", "historyId": "h1", "name": "{name}", "fullName": "{full}",
                "labels": [{{"name": "framework", "value": "{framework}"}}]}}"#
        )
    };
    for (full, name, framework, expected) in [
        ("shop.spec.js › login › greets", "greets", "playwright", "shop.spec.js.login › greets"),
        ("test_shop#test_amount", "test_amount[1]", "pytest", "test_shop.test_amount[1]"),
        ("shop.Shop#pays#cash", "Pays", "junit", "shop.Shop#pays.cash"),
        ("", "ships", "junit", "ships"),
    ] {
        let of_history = convert_all(&[("history.jsonl", &line(full, name))]).unwrap();
        assert_eq!(column(&of_history.results[0], "Identifier"), [expected]);
        let names = result(full, name, framework);
        let of_names =
            convert_all(&[("history.json", HISTORY), ("u-result.json", &names)]).unwrap();
        assert_eq!(column(&of_names.results[0], "Identifier"), [expected]);
    }
}

#[test]
fn broken_files_are_refused_with_their_line() {
    let cut = &LINES[..LINES.len() - 40];
    let error = format!("{:#}", convert_all(&[("history.jsonl", cut)]).err().unwrap());
    assert!(
        error.contains("history.jsonl is not valid JSON") && error.contains("line 2"),
        "{error}"
    );
    let error = convert_all(&[("a-result.json", NAMES)]).err().unwrap().to_string();
    assert!(error.contains("history.json or history.jsonl is missing"), "{error}");
}
