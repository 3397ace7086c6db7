//! Attempts at the same instance.

use anyhow::Result;
use assay_proto::{ReportStatus, TestResult, execution::Instance};
use serde_json::{Value, json};

use super::{by_name, counts, passed};
use crate::{
    exports::export,
    world::{World, reason},
};

const RERUN: &[u8] = b"<testsuite><testcase classname='shop' name='pays'>
    <flakyFailure message='declined' time='1'/></testcase></testsuite>";
const FAILED: &[u8] = b"<testsuite><testcase classname='shop' name='pays'>
    <failure message='declined'/></testcase></testsuite>";

fn attempt(number: i32, result: &str, text: &str) -> Value {
    let step = json!({ "StepNr": 1, "Result": result, "ActualResult": text });
    json!({
        "Identifier": "pays", "Result": result, "Attempt": number, "DurationInSec": 2,
        "Steps": [step],
    })
}

async fn only_instance(world: &World, execution: &str) -> Result<Instance> {
    let execution = world.execution(execution).await?;
    let report = &execution.test_reports[0];
    let entry = world.instances(report).await?.remove(0);
    let path = world.instance_path(report, &entry.id);
    Ok(world.reports().get_instance(world.user.call(path)).await?.into_inner())
}

#[tokio::test]
async fn the_last_attempt_decides_and_the_others_are_kept() -> Result<()> {
    let world = World::new().await?;
    let execution = world.open(by_name("run-7")).await?.id;
    world.report(&execution, json!([attempt(1, "Failed", "declined"), passed("other")])).await?;
    let failed = world.execution(&execution).await?;
    assert_eq!((failed.result(), failed.test_reports[0].is_flaky), (TestResult::Failed, false));

    world.report(&execution, json!([attempt(3, "Passed", "paid")])).await?;
    let late = json!([attempt(2, "Error", "no answer"), attempt(1, "Failed", "declined")]);
    let late = world.report(&execution, late).await?;
    assert_eq!((late.accepted, late.duplicates), (1, 1));

    let instance = only_instance(&world, &execution).await?;
    assert_eq!((instance.result(), instance.attempt), (TestResult::Passed, 3));
    assert_eq!(instance.steps[0].actual_result, "paid");
    let earlier: Vec<_> = instance
        .attempts
        .iter()
        .map(|one| (one.attempt, one.result(), one.steps[0].actual_result.as_str()))
        .collect();
    assert_eq!(earlier, [(1, TestResult::Failed, "declined"), (2, TestResult::Error, "no answer")]);
    let ended = world.complete(&execution).await?;
    assert_eq!(ended.result(), TestResult::Passed);
    assert_eq!(counts(&ended), (2, 0, 0, 2));
    let report = &ended.test_reports[0];
    assert_eq!((report.result(), report.status()), (TestResult::Passed, ReportStatus::InReview));
    assert!(report.is_flaky);
    assert!((report.total_duration_in_sec - 2.0).abs() < f64::EPSILON);
    assert_eq!(world.differences().await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_late_attempt_that_passed_shows_that_a_test_is_not_flaky() -> Result<()> {
    let world = World::new().await?;
    let execution = world.open(by_name("run-7")).await?.id;
    let is_flaky = async || -> Result<bool> {
        Ok(world.execution(&execution).await?.test_reports[0].is_flaky)
    };
    world.report(&execution, json!([attempt(3, "Passed", "paid")])).await?;
    assert!(is_flaky().await?, "attempts that were not reported have failed");
    world.report(&execution, json!([attempt(1, "Passed", "paid")])).await?;
    assert!(is_flaky().await?);
    world.report(&execution, json!([attempt(2, "Passed", "paid")])).await?;
    assert!(!is_flaky().await?);
    assert_eq!(world.differences().await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_report_that_a_reporter_sends_again_is_known_and_another_one_a_retry() -> Result<()> {
    let world = World::new().await?;
    let execution = world.open(by_name("run-7")).await?.id;
    world.add_report(&execution, Some("shard-1"), FAILED).await?;
    let again = world.add_report(&execution, Some("shard-1"), FAILED).await?;
    assert_eq!((again.accepted, again.duplicates), (0, 1));
    assert_eq!(world.execution(&execution).await?.result(), TestResult::Failed);

    let retried = world.add_report(&execution, Some("shard-1"), RERUN).await?;
    assert_eq!((retried.accepted, retried.duplicates), (2, 0));

    let instance = only_instance(&world, &execution).await?;
    assert_eq!((instance.result(), instance.attempt), (TestResult::Passed, 3));
    assert_eq!(instance.attempts.len(), 2);
    Ok(())
}

#[tokio::test]
async fn reports_without_a_reporter_have_instances_of_their_own() -> Result<()> {
    let world = World::new().await?;
    let execution = world.open(by_name("run-7")).await?.id;
    world.add_report(&execution, None, RERUN).await?;
    world.add_report(&execution, None, FAILED).await?;
    let ended = world.complete(&execution).await?;
    assert_eq!(ended.result(), TestResult::Failed);
    assert_eq!(world.instances(&ended.test_reports[0]).await?.len(), 2);
    let late = world.add_report(&execution, None, b"<testsuite><testcase name='x'/></testsuite>");
    assert_eq!(reason(&late.await.unwrap_err()), "execution_ended");
    Ok(())
}

#[tokio::test]
async fn attempts_of_uploads_are_kept_and_exported() -> Result<()> {
    let world = World::new().await?;
    let uploaded = world.upload(&[RERUN]).await?;
    assert_eq!(uploaded.result(), TestResult::Passed);
    assert!(uploaded.test_reports[0].is_flaky);
    let instance = only_instance(&world, &uploaded.id).await?;
    assert_eq!((instance.attempt, instance.attempts[0].result()), (2, TestResult::Failed));
    assert_eq!(instance.attempts[0].steps[0].actual_result, "declined");
    let exported = export(&world, &uploaded.id).await?;
    assert!(exported.contains("<flakyFailure message=\"declined\""), "{exported}");
    Ok(())
}

#[tokio::test]
async fn the_steps_of_the_latest_attempts_are_shown_as_far_as_there_is_room() -> Result<()> {
    let world = World::new().await?;
    let execution = world.open(by_name("run-7")).await?.id;
    let text = "x".repeat(60_000);
    let step = |nr: i32| json!({ "StepNr": nr, "Result": "Failed", "ActualResult": text });
    let steps: Vec<Value> = (1..=15).map(step).collect();
    for number in 1..=4 {
        let result = json!([{
            "Identifier": "pays", "Result": "Failed", "Attempt": number, "Steps": steps,
        }]);
        world.report(&execution, result).await?;
    }

    let instance = only_instance(&world, &execution).await?;

    let earlier: Vec<_> = instance.attempts.iter().map(|attempt| attempt.steps.len()).collect();
    assert_eq!((instance.steps.len(), earlier), (15, vec![1, 15, 15]));
    let left_out = &instance.attempts[0].steps[0].actual_result;
    assert!(left_out.contains("left out"), "{left_out}");
    assert!(export(&world, &execution).await?.contains(left_out.as_str()));
    Ok(())
}
