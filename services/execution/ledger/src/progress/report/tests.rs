//! How results change a test report.

use assay_proto::InstanceId;

use super::*;
use crate::progress::instance::{Attempt, Outcome};

fn report(instances: i32) -> TestReportState {
    TestReportState::new(TestReportId::new(), &SnapshotTestCase::default(), 1, instances)
}

fn instance(result: TestResult, duration_in_sec: f64) -> NewInstance {
    NewInstance {
        id: InstanceId::new(),
        report: 0,
        instance_nr: 1,
        reporter: String::new(),
        variant: String::new(),
        last: Attempt {
            number: 1,
            outcome: Outcome { result, duration_in_sec, ..Outcome::default() },
            ..Attempt::default()
        },
        earlier: Vec::new(),
    }
}

#[test]
fn a_report_runs_until_its_last_instance_is_reported() {
    let mut report = report(2);
    assert_eq!(report.published.status(), ReportStatus::NotExecuted);
    report.add(&instance(TestResult::Failed, 1.0)).unwrap();
    assert_eq!(report.published.status(), ReportStatus::Running);
    report.add(&instance(TestResult::Passed, 2.0)).unwrap();
    assert_eq!(report.published.status(), ReportStatus::InReview);
    assert_eq!(report.result(), TestResult::Failed);
    assert!((report.published.average_duration_in_sec - 1.5).abs() < f64::EPSILON);
}

#[test]
fn an_error_ends_a_report_as_engine_failure() {
    let mut report = report(1);
    report.add(&instance(TestResult::Error, 0.0)).unwrap();
    assert_eq!(report.published.status(), ReportStatus::EngineExecutionFailure);
}

#[test]
fn missing_instances_never_improve_the_result() {
    use TestResult::{Aborted, Canceled, Error, Failed, NotExecuted, Passed};
    for (so_far, ending, result, status) in [
        (NotExecuted, Ending::Aborted, Aborted, ReportStatus::InReview),
        (Passed, Ending::Aborted, Aborted, ReportStatus::InReview),
        (Failed, Ending::Aborted, Failed, ReportStatus::InReview),
        (Error, Ending::Aborted, Error, ReportStatus::EngineExecutionFailure),
        (NotExecuted, Ending::Canceled, Canceled, ReportStatus::Canceled),
        (Passed, Ending::Canceled, Canceled, ReportStatus::Canceled),
        (Failed, Ending::Canceled, Failed, ReportStatus::InReview),
        (Passed, Ending::EngineFailure(""), Error, ReportStatus::EngineExecutionFailure),
    ] {
        let mut report = report(2);
        if so_far != NotExecuted {
            report.add(&instance(so_far, 0.0)).unwrap();
        }
        report.end(ending);
        assert_eq!((report.result(), report.published.status()), (result, status), "{so_far:?}");
        assert_eq!(report.published.revision, 2);
    }
}

#[test]
fn an_ended_report_rejects_instances() {
    let mut report = report(1);
    report.add(&instance(TestResult::Passed, 0.0)).unwrap();
    assert!(matches!(
        report.add(&instance(TestResult::Passed, 0.0)),
        Err(Fault::Conflict { code: "report_ended", .. })
    ));
}

/// Returns the owners of a test with these labels.
fn owners_of(labels: &[(&str, &str)]) -> Vec<String> {
    let label = |(name, value): &(&str, &str)| Label {
        name: (*name).to_owned(),
        value: (*value).to_owned(),
    };
    let mut report = report(1);
    let labels = labels.iter().map(label).collect();
    report.classify(Arc::new(Classification { labels, ..Classification::default() }));
    assert_eq!(report.owners().lines().collect::<Vec<_>>(), report.published.owners);
    report.published.owners
}

#[test]
fn owners_are_the_values_of_labels_owner_in_any_case_each_once_and_in_order() {
    for (labels, expected) in [
        (&[][..], &[][..]),
        (&[("tag", "smoke"), ("owners", "Ada"), ("öwner", "Ada")], &[]),
        (&[("owner", ""), ("Owner", "  "), ("owner", "\n")], &[]),
        (&[("owner", "Zoë"), ("OWNER", "Ada"), ("oWneR", "Zoë"), ("tag", "x")], &["Ada", "Zoë"]),
        // In the order of code points: that of letters depends on the language.
        (&[("owner", "ä"), ("owner", "z"), ("owner", "Z"), ("owner", "😀")], &["Z", "ä", "😀"]),
        (&[("owner", "ada"), ("owner", "Ada"), ("owner", "Bob")], &["Ada", "Bob"]),
        (&[("owner", " Checkout\nteam\t"), ("owner", "Checkout team")], &["Checkout team"]),
        (&[("owner", "Ada, Bob")], &["Ada, Bob"]),
    ] {
        assert_eq!(owners_of(labels), expected, "{labels:?}");
    }
    let many: Vec<_> = (0..12).rev().map(|number| format!("Team {number:02}")).collect();
    let labels: Vec<_> = many.iter().map(|owner| ("owner", owner.as_str())).collect();
    let first: Vec<_> = (0..10).map(|number| format!("Team {number:02}")).collect();
    assert_eq!(owners_of(&labels), first);
    let longest = "ß".repeat(255);
    assert_eq!(owners_of(&[("owner", longest.as_str())]), [longest.as_str()]);
}
