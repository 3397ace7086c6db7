//! Reports that are written as CTRF.

use assay_formats::{CtrfWriter, Problem, Test, read};
use assay_proto::{TestResult, Timestamp};
use chrono::SubsecRound;
use serde_json::Value;

use crate::samples::{samples, tests};

fn written(tests: &[Test]) -> String {
    let mut writer = CtrfWriter::default();
    let id = "0196f1a8-0000-7000-8000-000000000000";
    let mut json = writer.open(id, Timestamp::default(), "assay");
    for test in tests {
        writer.test(&mut json, test);
    }
    json + &writer.close()
}

/// Returns a test with only those of its properties that a report preserves: times in milliseconds,
/// one problem of each attempt, and the steps of the last one.
fn preserved(test: &Test) -> Test {
    let mut test = test.clone();
    let milliseconds = |seconds: f64| (seconds * 1e3).round() / 1e3;
    let truncated = |time: Timestamp| Timestamp(time.0.trunc_subsecs(3));
    let last = test.attempts.len() - 1;
    for (index, attempt) in test.attempts.iter_mut().enumerate() {
        attempt.seconds = milliseconds(attempt.seconds);
        attempt.start = attempt.start.map(truncated);
        attempt.problems.truncate(1);
        for problem in &mut attempt.problems {
            let message = problem.message.trim().to_owned();
            *problem = Problem { message, ..Problem::default() };
        }
        let reason = std::mem::take(&mut attempt.reason);
        if attempt.problems.is_empty() && attempt.result == TestResult::Failed {
            attempt.problems.push(Problem { message: reason, ..Problem::default() });
        }
        if index < last {
            attempt.steps.clear();
        }
        for step in &mut attempt.steps {
            step.seconds = milliseconds(step.seconds);
        }
    }
    test.start = test.attempts[last].start;
    test.seconds = test.attempts[last].seconds;
    (test.retry, test.file, test.run) = Default::default();
    test.suites.retain(|suite| !suite.is_empty());
    test.labels.sort_by(|one, other| (&one.name, &one.value).cmp(&(&other.name, &other.value)));
    test.parameters.sort_by(|one, other| one.name.cmp(&other.name));
    test
}

#[test]
fn reading_a_written_report_restores_its_tests() {
    for sample in samples() {
        let tests = tests(&sample.path);
        let (json, mut index) = (written(&tests), 0);
        read(json.as_bytes(), |test| {
            assert_eq!(preserved(&test), preserved(&tests[index]), "{}", sample.path.display());
            index += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(index, tests.len(), "{}", sample.path.display());
    }
}

#[test]
fn written_reports_have_a_summary_and_all_required_members() {
    for sample in samples() {
        let report: Value = serde_json::from_str(&written(&tests(&sample.path))).unwrap();
        let (results, tests) = (&report["results"], report["results"]["tests"].as_array().unwrap());
        let with = |status: &str| tests.iter().filter(|test| test["status"] == status).count();
        assert_eq!(results["summary"]["tests"], tests.len());
        for status in ["passed", "failed", "skipped", "pending", "other"] {
            assert_eq!(results["summary"][status], with(status), "{status}");
        }
        for test in tests {
            assert!(!test["name"].as_str().unwrap().is_empty());
            assert!(test["duration"].is_i64() && test["flaky"].is_boolean());
            assert!(test.get("suite").is_none_or(|suite| !suite.as_array().unwrap().is_empty()));
        }
    }
}
