//! Tests that an agent retries, and launches that are run again or merged.

use assay_formats::{Test, reportportal::Launch};
use assay_proto::TestResult;
use serde_json::json;

use super::{accepted, item, launched, outline};

#[test]
fn retries_are_attempts_at_one_test() {
    let launched = launched(&accepted("playwright"));
    let flaky: Vec<_> = launched.tests.iter().filter(|test| test.is_flaky()).collect();
    assert_eq!(flaky.len(), 1);
    assert_eq!(flaky[0].identifier(), "shop.spec.js/login/flaky");
    assert_eq!(flaky[0].attempts.len(), 2);
    assert!(flaky[0].attempts[0].problems[0].message.contains("expect(received)"));
}

#[test]
fn tests_that_were_run_again_are_attempts() {
    let mut launch = Launch::of_agent("").with_reruns(true);
    for (id, parent, name, time) in [
        (1, None, "cart", 1),
        (2, Some(1), "pays", 2),
        (3, None, "cart", 3),
        (4, Some(3), "pays", 4),
    ] {
        let kind = if parent.is_none() { "SUITE" } else { "STEP" };
        let start = json!({ "name": name, "type": kind, "startTime": time });
        launch.start(id, parent, start.to_string().as_bytes());
        let status = if id == 2 { "FAILED" } else { "PASSED" };
        let finish = json!({ "status": status, "endTime": time });
        launch.finish(id, finish.to_string().as_bytes());
    }
    let launched = launch.end();
    assert_eq!(launched.tests.len(), 1);
    assert!(launched.tests[0].is_flaky());
}

#[test]
fn a_rerun_keeps_tests_of_different_suites_apart() {
    let mut launch = Launch::of_agent("").with_reruns(true);
    // The agent for Playwright has the same identity in every project, which is a suite.
    for (id, project, status) in [
        (1, "chromium", "FAILED"),
        (3, "firefox", "PASSED"),
        (5, "webkit", "FAILED"),
        (7, "webkit", "PASSED"),
    ] {
        let suite = json!({ "name": project, "type": "SUITE", "startTime": id });
        launch.start(id, None, suite.to_string().as_bytes());
        let test = json!({
            "name": "pays", "type": "STEP", "startTime": id, "testCaseId": "shop.spec.js/pays",
        });
        launch.start(id + 1, Some(id), test.to_string().as_bytes());
        for item in [id + 1, id] {
            let finish = json!({ "status": status, "endTime": id });
            launch.finish(item, finish.to_string().as_bytes());
        }
    }
    let of_test = |test: &Test| (test.result(), test.attempts.len());
    let tests: Vec<_> = launch.end().tests.iter().map(of_test).collect();
    let expected = [(TestResult::Failed, 1), (TestResult::Passed, 1), (TestResult::Passed, 2)];
    assert_eq!(tests, expected);
}

#[test]
fn the_worst_status_of_merged_launches_counts() {
    let finished = |has_reruns: bool, statuses: &[&str]| {
        let mut launch = Launch::of_agent("").with_reruns(has_reruns);
        item(&mut launch, 1, None, "STEP", "adds", "PASSED");
        for status in statuses {
            launch.finish_launch(json!({ "status": status }).to_string().as_bytes());
        }
        launch.finish_launch(b"{}");
        outline(launch).len()
    };
    assert_eq!(finished(false, &["FAILED", "PASSED"]), 2);
    assert_eq!(finished(false, &["PASSED", "FAILED"]), 2);
    assert_eq!(finished(true, &["FAILED", "PASSED"]), 1, "the tests passed when they ran again");
    assert_eq!(finished(true, &["FAILED"]), 2, "the last request has no status");
}
