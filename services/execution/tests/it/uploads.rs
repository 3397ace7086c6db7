//! Uploading the reports of test tools.

mod attachments;
mod truth;

use anyhow::Result;
use assay_proto::{
    ExecutionStatus, ReportStatus, TestResult,
    execution::{Instance, InstanceAttempt, UploadResultsRequest, UploadResultsTarget},
};
use futures::{TryStreamExt, stream};
use tonic::{Code, Status};

use crate::world::{World, fields, reason};

const PYTEST: &[u8] = include_bytes!("../../../kit/formats/tests/files/junit/pytest.xml");
const PLAYWRIGHT: &[u8] =
    include_bytes!("../../../kit/formats/tests/files/playwright-json/results.json");
const GO: &[u8] = include_bytes!("../../../kit/formats/tests/files/go-test/shop.json");
const NEXTEST: &[u8] = include_bytes!("../../../kit/formats/tests/files/junit/nextest.xml");
const SUREFIRE: &[u8] = include_bytes!("../../../kit/formats/tests/files/junit/surefire.xml");

#[tokio::test]
async fn an_upload_creates_a_completed_execution() -> Result<()> {
    let world = World::new().await?;

    let execution = world.upload(&[PYTEST]).await?;

    assert_eq!(execution.status(), ExecutionStatus::Completed);
    assert_eq!(execution.result(), TestResult::Error);
    assert!(execution.completion_date_time.is_some());
    assert_eq!(execution.tags, "nightly");
    let statistic = execution.statistic.as_ref().unwrap();
    assert_eq!((statistic.test_cases_total, statistic.test_cases_pending), (9, 0));
    assert_eq!((statistic.test_cases_passed, statistic.test_cases_failed), (3, 3));
    assert_eq!((statistic.test_cases_with_error, statistic.test_cases_canceled), (1, 2));
    let report = &execution.test_reports[1];
    assert_eq!(report.test_case_identifier, "test_shop.TestLogin.test_wrong_password_is_refused");
    assert_eq!(report.test_case_name, "test_wrong_password_is_refused");
    assert_eq!((report.result(), report.status()), (TestResult::Failed, ReportStatus::InReview));
    assert!(report.start_date_time.is_some() && report.finish_date_time.is_some());
    let events = world.events().await?;
    let subjects: Vec<&str> = events.iter().map(|(subject, _)| subject.as_str()).collect();
    assert_eq!(subjects, ["test_report.finished", "execution.completed"]);
    assert_eq!(world.execution(&execution.id).await?, execution);
    Ok(())
}

async fn only_instance(
    world: &World,
    report: &assay_proto::execution::TestReport,
) -> Result<Instance> {
    let entry = world.instances(report).await?.remove(0);
    let path = world.instance_path(report, &entry.id);
    Ok(world.reports().get_instance(world.user.call(path)).await?.into_inner())
}

#[tokio::test]
async fn attempts_show_failures_and_output_of_an_upload() -> Result<()> {
    let world = World::new().await?;
    let execution = world.upload(&[SUREFIRE]).await?;
    // The steps of each attempt at the only instance of a report, the last attempt at the end.
    let attempts = async |index: usize| -> Result<Vec<(String, TestResult, String)>> {
        let instance = only_instance(&world, &execution.test_reports[index]).await?;
        let earlier = instance.attempts.iter().flat_map(|attempt| &attempt.steps);
        let step = |step: &assay_proto::execution::Step| {
            (step.test_input.clone(), step.result(), step.actual_result.clone())
        };
        Ok(earlier.chain(&instance.steps).map(step).collect())
    };

    let passed = attempts(0).await?;
    assert_eq!(
        passed,
        [("com.acme.shop.CartTest / addsUp".into(), TestResult::Passed, String::new())]
    );

    let failed = attempts(2).await?;
    assert_eq!(failed[0].0, "com.acme.shop.CartTest / refusesNegativeAmounts");
    assert!(failed[0].2.starts_with("expected: <true> but was: <false>\n\norg.opentest4j"));
    assert_eq!(failed[1].1, TestResult::Failed);
    assert!(failed[1].2.contains("Output:\nsecond attempt"));

    let flaky = attempts(3).await?;
    let results: Vec<TestResult> = flaky.iter().map(|(_, result, _)| *result).collect();
    assert_eq!(results, [TestResult::Failed, TestResult::Error, TestResult::Passed]);

    let skipped = attempts(5).await?;
    assert_eq!((skipped[0].1, skipped[0].2.as_str()), (TestResult::Canceled, "no printer"));
    Ok(())
}

#[tokio::test]
async fn repeating_an_upload_creates_another_execution_and_no_new_cases() -> Result<()> {
    let world = World::new().await?;

    let first = world.upload(&[NEXTEST]).await?;
    let second = world.upload(&[NEXTEST]).await?;

    assert_ne!(first.id, second.id);
    for (earlier, later) in first.test_reports.iter().zip(&second.test_reports) {
        assert_eq!(earlier.test_case_id, later.test_case_id);
        assert_eq!((earlier.execution_number, later.execution_number), (1, 2));
    }
    let instance = only_instance(&world, &second.test_reports[0]).await?;
    assert_eq!(instance.steps[0].history[0].execution_number, 1);
    assert_eq!(world.start().await?.test_reports.len(), 3, "the set includes the cases");
    Ok(())
}

#[tokio::test]
async fn several_files_create_one_execution() -> Result<()> {
    let world = World::new().await?;

    let execution = world.upload(&[PYTEST, NEXTEST, NEXTEST]).await?;

    assert_eq!(execution.test_reports.len(), 12);
    let twice = &execution.test_reports[9];
    assert_eq!(twice.test_case_identifier, "shop.tests::cart::adds_up");
    assert_eq!(twice.requested_instances_count, 2, "a repeated test is another instance");
    let numbers: Vec<i32> =
        world.instances(twice).await?.iter().map(|entry| entry.instance_nr).collect();
    assert_eq!(numbers, [1, 2]);
    Ok(())
}

#[tokio::test]
async fn retries_of_playwright_are_attempts_and_projects_are_instances() -> Result<()> {
    let world = World::new().await?;

    let execution = world.upload(&[PLAYWRIGHT]).await?;

    assert_eq!(execution.test_reports.len(), 7);
    let named = |name: &str| {
        execution.test_reports.iter().find(|report| report.test_case_name == name).unwrap()
    };
    let flaky = named("login › flaky");
    assert_eq!(flaky.test_case_identifier, "shop.spec.js.login › flaky");
    assert_eq!((flaky.requested_instances_count, flaky.result()), (2, TestResult::Passed));
    assert!(flaky.is_flaky);
    let instance = only_instance(&world, flaky).await?;
    assert_eq!((instance.variant.as_str(), instance.attempt), ("Project=chromium", 2));
    let results: Vec<_> = instance.attempts.iter().map(InstanceAttempt::result).collect();
    assert_eq!(
        (results.as_slice(), instance.result()),
        (&[TestResult::Failed][..], TestResult::Passed)
    );
    let refused = only_instance(&world, named("login › refuses")).await?;
    assert_eq!(refused.steps[0].test_input, "look");
    assert!(refused.steps[0].actual_result.contains("Expected: 401"));
    Ok(())
}

#[tokio::test]
async fn files_of_an_upload_may_have_different_formats() -> Result<()> {
    let world = World::new().await?;

    let execution = world.upload(&[PYTEST, GO]).await?;

    let statistic = execution.statistic.as_ref().unwrap();
    assert_eq!(statistic.test_cases_total, 9 + 9);
    assert_eq!(statistic.test_cases_aborted, 1);
    Ok(())
}

#[tokio::test]
async fn rejected_uploads_create_nothing() -> Result<()> {
    let world = World::new().await?;
    let bomb = "<!DOCTYPE l [<!ENTITY a 'aaaa'>]><testsuite><testcase name='&a;'/></testsuite>";
    for (files, expected) in [
        (vec![bomb.as_bytes()], "doctype_refused"),
        (vec![PYTEST, b"<html/>".as_slice()], "unknown_format"),
        (vec![PYTEST, b"<testsuite><testcase name='a'/>".as_slice()], "malformed"),
        (vec![b"<testsuites/>".as_slice()], "no_tests"),
    ] {
        let refused = world.upload(&files).await.unwrap_err();
        assert_eq!(reason(&refused), expected);
    }
    assert_eq!(world.count("select count(*) from execution").await?, 0);
    assert_eq!(
        world.start().await.unwrap_err().code(),
        Code::InvalidArgument,
        "no cases were created"
    );
    Ok(())
}

#[tokio::test]
async fn an_upload_needs_an_existing_set_and_subject() -> Result<()> {
    use assay_proto::execution::UploadResultsRequest;

    let world = World::new().await?;
    let mut target = world.upload_target();
    target.subject_id = Some(world.project.clone());
    let message = UploadResultsRequest {
        target: Some(target.clone()),
        chunk: PYTEST.to_vec().into(),
        file: None,
        last: true,
    };
    let send = |message| world.user.call(futures::stream::iter([message]));
    let refused =
        world.results().upload_results(send(message.clone())).await.map(drop).unwrap_err();
    assert_eq!(fields(&refused), ["SubjectId"]);

    target.subject_id = None;
    target.test_set_id = world.project.clone();
    let message = UploadResultsRequest { target: Some(target), ..message };
    let refused = world.results().upload_results(send(message)).await.map(drop).unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    Ok(())
}

#[tokio::test]
async fn uploads_with_the_same_idempotency_key_create_one_execution() -> Result<()> {
    let world = World::new().await?;
    let upload = async |key: &str, file: &'static str| {
        let target =
            UploadResultsTarget { idempotency_key: Some(key.to_owned()), ..world.upload_target() };
        let message = UploadResultsRequest {
            target: Some(target),
            chunk: file.into(),
            last: true,
            ..UploadResultsRequest::default()
        };
        let parts =
            world.results().upload_results(world.user.call(stream::iter([message]))).await?;
        let parts: Vec<_> = parts.into_inner().try_collect().await?;
        Ok::<_, Status>(parts[0].id.clone())
    };
    let (one, other) = (
        "<testsuite><testcase name='a'/></testsuite>",
        "<testsuite><testcase name='b'/></testsuite>",
    );

    let (first, second) = tokio::try_join!(upload("k", one), upload("k", one))?;
    assert_eq!(first, second);
    assert_eq!(upload("k", one).await?, first);
    assert_ne!(upload("l", one).await?, first);
    let reused = upload("k", other).await.unwrap_err();
    assert_eq!(reason(&reused), "idempotency_key_reused");
    assert_eq!(fields(&upload("ä", one).await.unwrap_err()), ["Idempotency-Key"]);
    assert_eq!(world.count("select count(*) from execution").await?, 2);
    Ok(())
}
