//! Ends of executions: cancelation, completion, failures and timeouts.

use anyhow::Result;
use assay_proto::{
    ExecutionStatus, ReportStatus, TestResult,
    catalog::TestSetInput,
    execution::{Execution, VerdictState},
};
use serde_json::json;
use tonic::Code;

use crate::{
    judgement::verdict,
    world::{World, reason},
};

fn ends(execution: &Execution) -> Vec<(TestResult, ReportStatus)> {
    execution.test_reports.iter().map(|report| (report.result(), report.status())).collect()
}

/// Returns the counts of test cases: total, pending, canceled, aborted, with error, passed, failed.
fn counts(execution: &Execution) -> [i32; 7] {
    let statistic = execution.statistic.as_ref().unwrap();
    [
        statistic.test_cases_total,
        statistic.test_cases_pending,
        statistic.test_cases_canceled,
        statistic.test_cases_aborted,
        statistic.test_cases_with_error,
        statistic.test_cases_passed,
        statistic.test_cases_failed,
    ]
}

#[tokio::test]
async fn canceling_an_execution_ends_it_immediately() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("passed", 1), ("failed", 2), ("none", 1)]).await?;
    let execution = world.start().await?;
    let results = json!([
        { "Identifier": "passed", "Result": "Passed" },
        { "Identifier": "failed", "Result": "Failed" },
    ]);
    world.report(&execution.id, results).await?;

    world.cancel(&execution.id).await?;

    let canceled = world.execution(&execution.id).await?;
    assert_eq!(canceled.status(), ExecutionStatus::Canceled);
    assert!(canceled.completion_date_time.is_some());
    assert_eq!(
        ends(&canceled),
        [
            (TestResult::Passed, ReportStatus::InReview),
            (TestResult::Failed, ReportStatus::InReview),
            (TestResult::Canceled, ReportStatus::Canceled),
        ]
    );
    assert_eq!(counts(&canceled), [3, 0, 1, 0, 0, 1, 1]);
    world.cancel(&execution.id).await?;
    assert_eq!(
        world.execution(&execution.id).await?,
        canceled,
        "repeating the request has no effect"
    );
    let late = json!([{ "Identifier": "none", "Result": "Passed" }]);
    let refused = world.report(&execution.id, late).await.unwrap_err();
    assert_eq!(reason(&refused), "execution_ended");
    let (last, data) = world.events().await?.into_iter().next_back().unwrap();
    assert_eq!((last.as_str(), &data["Status"]), ("execution.canceled", &json!("Canceled")));

    let completed = world.start().await?;
    world.complete(&completed.id).await?;
    let refused = world.cancel(&completed.id).await.unwrap_err();
    assert_eq!(
        (refused.code(), reason(&refused).as_str()),
        (Code::FailedPrecondition, "execution_ended")
    );
    let unknown = world.cancel(&world.set).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    Ok(())
}

#[tokio::test]
async fn a_failure_cancels_reports_that_have_not_started() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("half", 2), ("b", 1), ("c", 1)]).await?;
    world.stop_on_failure().await?;
    let execution = world.start().await?;
    let results = json!([
        { "Identifier": "half", "Result": "Passed" },
        { "Identifier": "a", "Result": "Failed" },
        { "Identifier": "b", "Result": "Passed" },
    ]);

    world.report(&execution.id, results).await?;

    let stopped = world.execution(&execution.id).await?;
    assert_eq!(
        ends(&stopped),
        [
            (TestResult::Failed, ReportStatus::InReview),
            (TestResult::Passed, ReportStatus::Running),
            (TestResult::Passed, ReportStatus::InReview),
            (TestResult::Canceled, ReportStatus::Canceled),
        ]
    );
    assert_eq!(
        stopped.status(),
        ExecutionStatus::Running,
        "the caller completes an external execution"
    );
    let late = json!([{ "Identifier": "c", "Result": "Passed" }]);
    assert_eq!(reason(&world.report(&execution.id, late).await.unwrap_err()), "report_ended");
    let rest = json!([{ "Identifier": "half", "InstanceNr": 2, "Result": "Passed" }]);
    world.report(&execution.id, rest).await?;
    assert_eq!(counts(&world.complete(&execution.id).await?), [4, 0, 1, 0, 0, 2, 1]);
    Ok(())
}

#[tokio::test]
async fn an_execution_that_a_failure_has_stopped_does_not_pass_although_the_failure_is_old()
-> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1)]).await?;
    world.stop_on_failure().await?;
    for is_old in [false, true] {
        let execution = world.start().await?;
        let failed = json!([{ "Identifier": "a", "Result": "Failed" }]);
        world.report(&execution.id, failed).await?;
        let ended = world.complete(&execution.id).await?;
        let verdict = verdict(&world, &ended).await?;
        assert_eq!(verdict.state(), VerdictState::Failed);
        assert_eq!(verdict.rules[0].message, "1 test case not run after a failure");
        assert_eq!(verdict.rules[1].is_met, is_old);
    }
    assert_eq!(world.differences().await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_timeout_aborts_unfinished_reports() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("passed", 1), ("none", 1)]).await?;
    let changes = TestSetInput { time_out: 10.0, ..TestSetInput::default() };
    world.change_set(changes, &["TimeOut"]).await?;
    let execution = world.start().await?;
    let result = json!([{ "Identifier": "passed", "Result": "Passed" }]);
    world.report(&execution.id, result).await?;

    world.reconcile().await?;
    assert_eq!(world.execution(&execution.id).await?.status(), ExecutionStatus::Running);
    let in_time = "select count(*) from execution
         where deadline = request_time + make_interval(mins => 10)";
    assert_eq!(world.count(in_time).await?, 1);
    world.change("update execution set deadline = now()").await?;
    world.reconcile().await?;

    let ended = world.execution(&execution.id).await?;
    assert_eq!((ended.status(), ended.result()), (ExecutionStatus::Completed, TestResult::Aborted));
    assert_eq!(counts(&ended), [2, 0, 0, 1, 0, 1, 0]);
    Ok(())
}

#[tokio::test]
async fn completing_an_execution_aborts_unfinished_reports() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("passed", 1), ("half", 2), ("failed", 2), ("error", 2), ("none", 1)]).await?;
    let execution = world.start().await?;
    let results = json!([
        { "Identifier": "passed", "Result": "Passed" },
        { "Identifier": "half", "Result": "Passed" },
        { "Identifier": "failed", "Result": "Failed" },
        { "Identifier": "error", "Result": "Error" },
    ]);
    world.report(&execution.id, results).await?;

    let completed = world.complete(&execution.id).await?;

    assert_eq!(completed.status(), ExecutionStatus::Completed);
    assert_eq!(completed.result(), TestResult::Error);
    assert!(completed.completion_date_time.is_some());
    let ends: Vec<_> =
        completed.test_reports.iter().map(|report| (report.result(), report.status())).collect();
    assert_eq!(
        ends,
        [
            (TestResult::Passed, ReportStatus::InReview),
            (TestResult::Aborted, ReportStatus::InReview),
            (TestResult::Failed, ReportStatus::InReview),
            (TestResult::Error, ReportStatus::EngineExecutionFailure),
            (TestResult::Aborted, ReportStatus::InReview),
        ]
    );
    assert_eq!(counts(&completed), [5, 0, 0, 2, 1, 1, 1]);
    assert_eq!(
        world.complete(&execution.id).await?,
        completed,
        "repeating the request has no effect"
    );
    Ok(())
}

#[tokio::test]
async fn dispatched_and_canceled_executions_cannot_be_completed() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    for (change, expected) in [
        ("update execution set mode = 'Dispatch'", "not_external"),
        ("update execution set mode = 'External', status = 'Canceled'", "execution_ended"),
    ] {
        let execution = world.start().await?;
        sqlx::query(change).execute(&world.db).await?;
        let refused = world.complete(&execution.id).await.unwrap_err();
        assert_eq!(
            (refused.code(), reason(&refused).as_str()),
            (Code::FailedPrecondition, expected)
        );
    }
    Ok(())
}

#[tokio::test]
async fn an_execution_without_a_timeout_ends_after_a_week() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let (external, queued) = (world.start().await?, world.dispatch().await?);
    let due = "select count(*) from execution where deadline - request_time = interval '168 hours'";
    assert_eq!(world.count(due).await?, 2);
    world.change("update execution set deadline = deadline - interval '168 hours'").await?;
    world.reconcile().await?;
    for execution in [external, queued] {
        let ended = world.execution(&execution.id).await?;
        assert_eq!(
            (ended.status(), ended.result()),
            (ExecutionStatus::Completed, TestResult::Aborted)
        );
    }
    Ok(())
}
