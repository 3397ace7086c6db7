//! Tests of the bodies of requests.

use serde_json::json;

use super::*;

fn sent(result: Value) -> Result<Sent, Fault> {
    serde_json::from_value::<ResultBody>(result).unwrap().sent(0, None)
}

#[test]
fn comments_of_trcli_are_failures_with_a_message_and_a_text() {
    let comment = "Type: A\nMessage: it broke\nhere\nText: trace\nText: more";
    let Sent { attempt, .. } =
        sent(json!({"case_id": 1, "status_id": 5, "comment": comment})).unwrap();
    let problem = &attempt.problems[0];
    assert_eq!((&*problem.message, &*problem.text), ("it broke\nhere", "trace\nText: more"));
    let comment = "The log says Message: none";
    let Sent { attempt, .. } =
        sent(json!({"case_id": 1, "status_id": 5, "comment": comment})).unwrap();
    assert_eq!(attempt.problems[0].text, comment);
}

#[test]
fn durations_have_units() {
    for (elapsed, expected) in [
        (json!("1m 5s"), 65.0),
        (json!("1h"), 3600.0),
        (json!("1d 2h 3m 4s"), 93_784.0),
        (json!(7), 7.0),
        (json!("0.5s"), 0.5),
        (json!(null), 0.0),
        (json!("soon"), 0.0),
        (json!("infs"), 0.0),
    ] {
        assert!((seconds(&elapsed) - expected).abs() < 1e-9, "{elapsed}");
    }
}

#[test]
fn statuses_become_results() {
    for (status, expected) in [
        (json!(1), TestResult::Passed),
        (json!(2), TestResult::Aborted),
        (json!(4), TestResult::Canceled),
        (json!("5"), TestResult::Failed),
        (json!(9), TestResult::Canceled),
    ] {
        let sent = sent(json!({"case_id": "7", "status_id": status})).unwrap();
        assert_eq!((sent.test_case, sent.attempt.result), (7, expected));
    }
    for refused in [json!({"case_id": 1}), json!({"status_id": 1})] {
        sent(refused).unwrap_err();
    }
    sent(json!({"case_id": 1, "status_id": 3})).unwrap_err();
}

#[test]
fn several_results_of_a_test_case_are_attempts() {
    let one = |case| sent(json!({"case_id": case, "status_id": 1})).unwrap();
    let identifiers = [(1, "a".to_owned()), (2, "b".to_owned())].into();
    let tests = tests(vec![one(1), one(2), one(1)], &identifiers);
    let attempts: Vec<_> =
        tests.iter().map(|test| (test.identifier(), test.attempts.len())).collect();
    assert_eq!(attempts, [("a".to_owned(), 2), ("b".to_owned(), 1)]);
}

#[test]
fn a_run_is_limited_by_false_and_a_list_only() {
    for (details, excludes) in [
        (json!({}), false),
        (json!({"include_all": false, "case_ids": [1, 2]}), true),
        (json!({"include_all": false, "case_ids": ["C7", 7.5, null, 1e300]}), true),
        (json!({"include_all": false, "case_ids": [1, 7]}), false),
        (json!({"include_all": false, "case_ids": null}), false),
        (json!({"include_all": false, "case_ids": {"1": 1}}), false),
        (json!({"include_all": 0, "case_ids": [1]}), false),
        (json!({"include_all": "no", "case_ids": "C1"}), false),
        (json!({"include_all": [], "case_ids": 7}), false),
    ] {
        let selection = Selection::of(&details.to_string()).unwrap();
        assert_eq!(selection.excludes()(7), excludes, "{details}");
    }
}
