//! Recorded conversations of agents of ReportPortal. The README beside them has the expected counts.

mod reruns;

use std::{collections::BTreeMap, fs, path::PathBuf};

use assay_formats::{
    Content, Test,
    reportportal::{Launch, Launched},
};
use assay_proto::{TestResult, name_of};
use serde_json::{Value, json};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/reportportal")
}

fn recorded(name: &str) -> Vec<Value> {
    let lines = fs::read_to_string(folder().join(format!("{name}.ndjson"))).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the hexadecimal digits of an id as a number.
fn id(text: &str) -> u128 {
    u128::from_str_radix(&text.replace('-', ""), 16).unwrap()
}

/// Returns the requests that the server of the recording accepted.
fn accepted(name: &str) -> Vec<Value> {
    let mut requests = recorded(name);
    requests.retain(|request| request["status"].as_u64().unwrap() < 300);
    requests
}

fn agent(requests: &[Value]) -> String {
    let attributes = requests.iter().filter_map(|request| request["json"]["attributes"].as_array());
    let agent = attributes.flatten().find(|attribute| attribute["key"] == "agent");
    agent.map(|agent| agent["value"].as_str().unwrap().to_owned()).unwrap_or_default()
}

fn launched(requests: &[Value]) -> Launched {
    let mut launch = Launch::of_agent(&agent(requests));
    for request in requests {
        add(&mut launch, request);
    }
    launch.end()
}

fn add(launch: &mut Launch, request: &Value) {
    let path = request["path"].as_str().unwrap().trim_end_matches('/');
    let parts: Vec<&str> = path.split('/').skip(4).collect();
    let body = request["json"].to_string();
    match (request["method"].as_str().unwrap(), &parts[..]) {
        ("POST", ["item", parent @ ..]) => {
            let item = id(request["id"].as_str().unwrap());
            launch.start(item, parent.first().map(|parent| id(parent)), body.as_bytes());
        }
        ("PUT", ["item", item]) => launch.finish(id(item), body.as_bytes()),
        ("POST", ["log"]) => {
            let parts = request["parts"].as_array().into_iter().flatten();
            let batch = parts.filter_map(|part| part["json"].as_array()).flatten();
            for entry in [&request["json"]].into_iter().filter(|one| one.is_object()).chain(batch) {
                let mut entry = entry.clone();
                if entry["file"].is_object() {
                    entry["file"]["artifact"] = json!("stored");
                }
                let item = entry["itemUuid"].as_str().map(id);
                launch.log(item, entry.to_string().as_bytes());
            }
        }
        _ => {}
    }
}

/// The counts of a recording, as the README writes them.
fn counts(launched: &Launched) -> String {
    let tests = &launched.tests;
    let mut cases: Vec<String> = tests.iter().map(Test::identifier).collect();
    cases.sort();
    cases.dedup();
    let mut results = BTreeMap::<&str, usize>::new();
    for test in tests {
        let result = match test.result() {
            TestResult::Passed => "passed",
            TestResult::Failed => "failed",
            TestResult::Canceled => "skipped",
            TestResult::Error => "errors",
            other => panic!("{}", name_of(other)),
        };
        *results.entry(result).or_default() += 1;
    }
    let attempts = || tests.iter().flat_map(|test| &test.attempts);
    // An attempt is a step, and so is each item below it.
    let steps: usize = attempts().map(|attempt| 1 + attempt.steps.len()).sum();
    let is_stored = |content: &Content| matches!(content, Content::Artifact(_));
    let files = attempts().flat_map(|attempt| &attempt.attachments);
    let files = files.filter(|file| is_stored(&file.content)).count();
    let counts = [
        tests.len(),
        cases.len(),
        results.get("passed").copied().unwrap_or_default(),
        results.get("failed").copied().unwrap_or_default(),
        results.get("errors").copied().unwrap_or_default(),
        results.get("skipped").copied().unwrap_or_default(),
        steps,
        files,
        launched.logs,
    ];
    counts.map(|count| count.to_string()).join(" | ")
}

/// Returns the names of the recordings, with their expected counts.
fn expected() -> Vec<(String, String)> {
    let readme = fs::read_to_string(folder().join("README.md")).unwrap();
    let rows = readme.lines().filter_map(|line| line.trim_matches('|').split_once(" | "));
    let recording = |(name, counts): (&str, &str)| {
        let name = name.trim().strip_prefix('`')?.strip_suffix(".ndjson`")?;
        Some((name.to_owned(), counts.trim().to_owned()))
    };
    rows.filter_map(recording).collect()
}

#[test]
fn recordings_of_agents_have_the_tests_that_the_tools_reported() {
    let expected = expected();
    let files = fs::read_dir(folder()).unwrap().count();
    assert_eq!(expected.len(), files - 1, "the README lists all recordings");
    for (name, expected) in expected {
        assert_eq!(counts(&launched(&accepted(&name))), expected, "{name}");
    }
}

#[test]
fn the_order_of_requests_does_not_matter() {
    for (name, expected) in expected() {
        let mut requests = accepted(&name);
        requests.reverse();
        assert_eq!(counts(&launched(&requests)), expected, "{name}");
    }
}

#[test]
fn repeated_requests_have_no_effect() {
    for (name, expected) in expected() {
        let requests = accepted(&name);
        let mut launch = Launch::of_agent(&agent(&requests));
        for (request, number) in requests.iter().zip(1_u32..) {
            add(&mut launch, request);
            let path = request["path"].as_str().unwrap();
            if path.contains("/item") {
                // The agent did not receive the answer to the first request.
                let mut again = request.clone();
                if request["method"] == "POST" {
                    again["id"] = json!(format!("{number:032x}"));
                }
                add(&mut launch, &again);
            }
        }
        assert_eq!(counts(&launch.end()), expected, "{name}");
    }
}

#[test]
fn errors_that_were_logged_after_the_end_of_a_test_explain_its_failure() {
    let launched = launched(&accepted("pytest-async-batched"));
    let failed = launched.tests.iter().find(|test| test.result() == TestResult::Failed).unwrap();
    let texts: Vec<_> = failed.steps().into_iter().filter_map(|step| step.actual_result).collect();
    assert!(texts.iter().any(|text| text.contains("assert")), "{texts:?}");
}

#[test]
fn an_item_without_an_end_is_aborted() {
    let mut requests = accepted("pytest-default");
    requests.truncate(6);
    let launched = launched(&requests);
    assert_eq!(launched.tests.len(), 1);
    assert_eq!(launched.tests[0].result(), TestResult::Aborted);
}

#[test]
fn an_issue_is_a_comment() {
    let mut launch = Launch::of_agent("");
    launch.start(1, None, br#"{"name": "pays", "type": "STEP"}"#);
    let issue = json!({
        "issueType": "pb001", "comment": "known",
        "externalSystemIssues": [{ "ticketId": "SHOP-1", "url": "https://tracker.test/SHOP-1" }],
    });
    let finish = json!({ "status": "FAILED", "description": "lost", "issue": issue });
    launch.finish(1, finish.to_string().as_bytes());
    let launched = launch.end();
    assert_eq!(launched.tests[0].comment, "known https://tracker.test/SHOP-1");
    assert_eq!(launched.tests[0].attempts[0].problems[0].message, "lost");
}

#[test]
fn attributes_that_users_have_chosen_are_labels() {
    let mut launch = Launch::of_agent("");
    let attributes = json!([
        { "value": "smoke" }, { "key": "issue", "value": "SHOP-7" },
        { "key": "agent", "value": "robot 5", "system": true },
    ]);
    let start = json!({ "name": "pays", "type": "STEP", "attributes": attributes });
    launch.start(1, None, start.to_string().as_bytes());
    let attributes = json!([{ "value": "smoke" }, { "key": "owner", "value": "ada" }]);
    let finish = json!({ "status": "PASSED", "attributes": attributes });
    launch.finish(1, finish.to_string().as_bytes());
    let classification = launch.end().tests[0].classification().unwrap();
    let labels = classification.labels.iter().map(|label| (&*label.name, &*label.value));
    let expected = [("tag", "smoke"), ("issue", "SHOP-7"), ("owner", "ada")];
    assert_eq!(labels.collect::<Vec<_>>(), expected);
    assert_eq!(classification.links[0].target, "SHOP-7");
}

fn item(launch: &mut Launch, id: u128, parent: Option<u128>, kind: &str, name: &str, status: &str) {
    let start = json!({ "name": name, "type": kind, "startTime": 1_795_169_644_000_u128 + id });
    launch.start(id, parent, start.to_string().as_bytes());
    let finish = json!({ "status": status, "endTime": 1_795_169_645_000_u64 });
    launch.finish(id, finish.to_string().as_bytes());
}

/// Returns result and path of each entry.
fn outline(launch: Launch) -> Vec<String> {
    let line = |test: Test| format!("{} {}", name_of(test.result()), test.path().join(" / "));
    launch.end().tests.into_iter().map(line).collect()
}

#[test]
fn hooks_and_suites_that_fail_are_entries_of_their_own() {
    let mut launch = Launch::of_agent("");
    item(&mut launch, 1, None, "SUITE", "shop", "FAILED");
    item(&mut launch, 2, Some(1), "STEP", "adds", "PASSED");
    item(&mut launch, 3, Some(1), "AFTER_CLASS", "closes", "FAILED");
    item(&mut launch, 4, None, "SUITE", "till", "FAILED");
    item(&mut launch, 5, Some(4), "STEP", "pays", "PASSED");
    assert_eq!(
        outline(launch),
        ["Passed shop / adds", "Passed till / pays", "Failed shop / closes", "Failed till"]
    );
}

#[test]
fn a_setup_that_failed_with_its_tests_is_no_other_failure() {
    for (status, expected) in [("FAILED", 1), ("SKIPPED", 2)] {
        let mut launch = Launch::of_agent("");
        item(&mut launch, 1, None, "SUITE", "shop", "FAILED");
        item(&mut launch, 2, Some(1), "BEFORE_SUITE", "opens", "FAILED");
        item(&mut launch, 3, Some(1), "STEP", "adds", status);
        assert_eq!(outline(launch).len(), expected, "{status}");
    }
}

#[test]
fn a_launch_that_failed_is_not_green() {
    let mut launch = Launch::of_agent("");
    item(&mut launch, 1, None, "STEP", "adds", "PASSED");
    launch.finish_launch(br#"{"status": "FAILED", "endTime": 1}"#);
    assert_eq!(outline(launch), ["Passed adds", "Failed Test run"]);
}

#[test]
fn only_the_status_passed_is_passed() {
    for status in ["INFO", "WARN", "SKIPPED", "CANCELLED", "STOPPED", "ODD"] {
        let mut launch = Launch::of_agent("");
        item(&mut launch, 1, None, "STEP", "adds", status);
        assert_ne!(launch.end().tests[0].result(), TestResult::Passed, "{status}");
    }
}

#[test]
fn texts_that_are_not_valid_cost_a_character_and_no_item() {
    let mut launch = Launch::of_agent("");
    launch.start(1, None, br#"{"name": "bad \udcff byte", "type": "STEP", "x": 1e999}"#);
    launch.log(Some(1), br#"{"level": "ERROR", "message": "cut \ud83d"}"#);
    launch.finish(1, b"{\"status\": \"FAILED\", \"description\": \"\xff\"}");
    launch.finish(2, b"no JSON");
    let tests = launch.end().tests;
    assert_eq!(tests[0].name, "bad \u{fffd} byte");
    assert_eq!(tests[0].result(), TestResult::Failed);
    assert_eq!(
        tests[1].attempts[0].problems[0].message,
        "1 requests of the agent could not be read."
    );
}
