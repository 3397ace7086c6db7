//! Changes: what is new in an execution, compared with its series.

use anyhow::Result;
use assay_proto::{
    Batch, ResultChange,
    catalog::ProjectInput,
    execution::{
        ChangeCounts, Execution, ExecutionSummary, GetExecutionSummaryRequest,
        ListTestReportsRequest, OpenExecutionInput, TestReportEntry,
    },
};
use futures::TryStreamExt;
use serde_json::{Value, json};
use tonic::Status;

use crate::world::World;

/// Returns a result that failed with this message.
pub(crate) fn failed(identifier: &str, message: &str) -> Value {
    json!({
        "Identifier": identifier, "Result": "Failed",
        "Steps": [{ "StepNr": 1, "Result": "Failed", "ActualResult": message }],
    })
}

pub(crate) fn passed(identifier: &str) -> Value {
    json!({ "Identifier": identifier, "Result": "Passed" })
}

/// Runs tests on a branch and completes the execution.
pub(crate) async fn run(world: &World, branch: &str, results: Value) -> Result<Execution> {
    let execution = open(world, branch).await?;
    world.report(&execution.id, results).await?;
    Ok(world.complete(&execution.id).await?)
}

/// Opens an execution on a branch.
pub(crate) async fn open(world: &World, branch: &str) -> Result<Execution, Status> {
    let input = OpenExecutionInput {
        project: "Shop".to_owned(),
        test_set: "Nightly".to_owned(),
        branch: Some(branch.to_owned()),
        ..OpenExecutionInput::default()
    };
    world.open(input).await
}

pub(crate) async fn summary(
    world: &World,
    execution: &Execution,
) -> Result<ExecutionSummary, Status> {
    let request = GetExecutionSummaryRequest { project_id: None, id: execution.id.clone() };
    Ok(world.executions().get_execution_summary(world.user.call(request)).await?.into_inner())
}

/// Returns the numbers of test cases: new, still failing, fixed, flaky and not reviewed.
pub(crate) async fn counts(world: &World, execution: &Execution) -> Result<[i32; 5]> {
    let ChangeCounts { new, still, fixed, flaky, unreviewed, .. } =
        summary(world, execution).await?.changes.unwrap();
    Ok([new, still, fixed, flaky, unreviewed])
}

/// Returns the reports of an execution.
pub(crate) async fn reports(
    world: &World,
    execution: &Execution,
) -> Result<Vec<TestReportEntry>, Status> {
    let execution_id = execution.id.clone();
    list_reports(world, ListTestReportsRequest { execution_id, ..Default::default() }).await
}

pub(crate) async fn list_reports(
    world: &World,
    request: ListTestReportsRequest,
) -> Result<Vec<TestReportEntry>, Status> {
    let batches = world.reports().list_test_reports(world.user.call(request)).await?.into_inner();
    let batches: Vec<_> = batches.try_collect().await?;
    Ok(batches.iter().flat_map(|batch| batch.parse().unwrap()).collect())
}

#[tokio::test]
async fn failures_are_new_once_and_fixed_once() -> Result<()> {
    let world = World::new().await?;
    let green = run(&world, "main", json!([passed("a"), passed("b"), passed("c")])).await?;
    assert_eq!(counts(&world, &green).await?, [0; 5]);
    assert_eq!(summary(&world, &green).await?.compared_with, None);

    let red = json!([failed("a", "lost"), failed("d", "lost"), passed("b"), passed("c")]);
    let red = run(&world, "main", red).await?;
    assert_eq!(counts(&world, &red).await?, [2, 0, 0, 0, 2], "a passed, and d never ran");
    assert_eq!(summary(&world, &red).await?.compared_with, Some(green.id));

    let partial = run(&world, "main", json!([passed("b")])).await?;
    assert_eq!(counts(&world, &partial).await?, [0; 5]);

    let later = run(&world, "main", json!([failed("a", "lost"), passed("d"), passed("b")])).await?;
    assert_eq!(counts(&world, &later).await?, [0, 1, 1, 0, 1], "the partial run lacks both");

    let request = ListTestReportsRequest { execution_id: later.id.clone(), ..Default::default() };
    let entries = list_reports(&world, request.clone()).await?;
    let shown: Vec<_> = entries
        .iter()
        .map(|entry| (entry.test_case_identifier.as_str(), entry.change(), entry.history.as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            ("a", ResultChange::Still, "PF-"),
            ("d", ResultChange::Fixed, "-F-"),
            ("b", ResultChange::None, "PPP"),
        ]
    );
    assert_eq!(entries[0].headline, "lost");
    assert_eq!(entries[0].attempts, 1);
    let since = entries[0].failing_since.unwrap();
    assert!(since <= red.completion_date_time.unwrap() && since >= green.request_time.unwrap());

    let mut still = ListTestReportsRequest { ..request };
    still.set_change(ResultChange::Still);
    still.fingerprint = Some(entries[0].fingerprint.clone());
    assert_eq!(list_reports(&world, still).await?.len(), 1);
    assert_eq!(world.differences().await?, 0);
    Ok(())
}

#[tokio::test]
async fn branches_do_not_influence_each_other() -> Result<()> {
    let world = World::new().await?;
    run(&world, "main", json!([passed("a"), failed("b", "slow")])).await?;

    let first = run(&world, "feature", json!([failed("a", "lost"), failed("b", "slow")])).await?;
    assert_eq!(counts(&world, &first).await?, [1, 1, 0, 0, 2], "compared with the default branch");
    let other = run(&world, "other", json!([failed("a", "lost"), passed("b")])).await?;
    assert_eq!(counts(&world, &other).await?, [1, 0, 1, 0, 1]);
    let again = run(&world, "feature", json!([failed("a", "lost"), passed("b")])).await?;
    assert_eq!(counts(&world, &again).await?, [0, 1, 1, 0, 1], "compared with its own runs");
    let main = run(&world, "main", json!([failed("a", "lost"), passed("b")])).await?;
    assert_eq!(counts(&world, &main).await?, [1, 0, 1, 0, 1], "only main counts");
    Ok(())
}

#[tokio::test]
async fn branches_are_compared_with_the_default_branch_at_their_request() -> Result<()> {
    let world = World::new().await?;
    let results = || json!([failed("a", "slow"), passed("b")]);
    let main = run(&world, "main", results()).await?;
    let old = run(&world, "old", results()).await?;
    let early = open(&world, "early").await?;
    let trunk =
        ProjectInput { default_branch: Some("trunk".to_owned()), ..ProjectInput::default() };
    world.change_project(trunk, &["DefaultBranch"]).await?;

    let young = run(&world, "young", results()).await?;
    assert_eq!(summary(&world, &young).await?.compared_with, None, "trunk has no executions");
    assert_eq!(counts(&world, &young).await?, [1, 0, 0, 0, 1]);
    world.report(&early.id, results()).await?;
    assert_eq!(summary(&world, &early).await?.compared_with, Some(main.id), "requested before");
    assert_eq!(counts(&world, &early).await?, [0, 1, 0, 0, 1]);
    let again = run(&world, "old", results()).await?;
    assert_eq!(summary(&world, &again).await?.compared_with, Some(old.id), "its own executions");

    let first = run(&world, "trunk", results()).await?;
    assert_eq!(counts(&world, &first).await?, [1, 0, 0, 0, 1], "not compared with main");
    let later = run(&world, "later", results()).await?;
    assert_eq!(summary(&world, &later).await?.compared_with, Some(first.id));
    assert_eq!(counts(&world, &later).await?, [0, 1, 0, 0, 1]);
    assert_eq!(world.differences().await?, 0);
    Ok(())
}

#[tokio::test]
async fn executions_that_run_at_the_same_time_are_compared_with_those_before() -> Result<()> {
    let world = World::new().await?;
    run(&world, "main", json!([passed("a")])).await?;
    let (one, other) = (open(&world, "main").await?, open(&world, "main").await?);
    world.report(&one.id, json!([failed("a", "lost")])).await?;
    world.complete(&one.id).await?;
    world.report(&other.id, json!([failed("a", "lost")])).await?;
    assert_eq!(counts(&world, &other).await?, [1, 0, 0, 0, 1]);
    Ok(())
}

#[tokio::test]
async fn a_retried_test_is_flaky_and_a_report_that_is_pending_again_is_not_judged() -> Result<()> {
    let world = World::new().await?;
    run(&world, "main", json!([passed("a")])).await?;
    let execution = open(&world, "main").await?;
    let attempt = |mut result: Value, attempt| {
        result["Attempt"] = json!(attempt);
        result
    };
    world.report(&execution.id, json!([attempt(failed("a", "lost"), 1)])).await?;
    assert_eq!(counts(&world, &execution).await?, [1, 0, 0, 0, 1]);
    world.report(&execution.id, json!([attempt(passed("a"), 2)])).await?;
    assert_eq!(counts(&world, &execution).await?, [0, 0, 0, 1, 0]);
    assert_eq!(world.count("select count(*) from failure").await?, 0, "its last attempt passed");
    let entries = reports(&world, &execution).await?;
    assert_eq!(entries[0].headline, "lost", "that of its first failed attempt");
    assert_eq!(entries[0].fingerprint, "", "it does not fail");
    world.report(&execution.id, json!([attempt(failed("a", "gone"), 3)])).await?;
    assert_eq!(counts(&world, &execution).await?, [1, 0, 0, 0, 1]);
    let announced = json!([{ "Identifier": "a", "Result": "NotExecuted", "Variant": "linux" }]);
    world.report(&execution.id, announced).await?;
    assert_eq!(counts(&world, &execution).await?, [0; 5], "another instance is expected");
    world.complete(&execution.id).await?;
    assert_eq!(counts(&world, &execution).await?, [1, 0, 0, 0, 1]);
    assert_eq!(world.differences().await?, 0);
    Ok(())
}

#[tokio::test]
async fn drift_of_changes_and_failures_is_found_and_repaired() -> Result<()> {
    let world = World::new().await?;
    run(&world, "main", json!([passed("a"), passed("b")])).await?;
    run(&world, "main", json!([failed("a", "lost"), passed("b")])).await?;
    for drift in [
        "update test_report set change = 'Still' where change = 'New'",
        "update test_report set change = 'Fixed' where test_case_identifier = 'b'",
        "update failure set fingerprint = decode(repeat('00', 16), 'hex')",
        "update failure set version = 0",
        "delete from failure",
        "insert into failure
         select customer_id, id, 1, project_id, execution_id, test_case_id, ''::bytea, 1, ''
         from test_report r join lateral (
             select project_id from execution e where e.id = r.execution_id
         ) as e on true
         where test_case_identifier = 'b'
         limit 1",
    ] {
        world.change(drift).await?;
        assert_ne!(world.differences().await?, 0, "{drift}");
        assay_execution::rebuild(&world.db).await?;
        assert_eq!(world.differences().await?, 0, "{drift}");
    }
    Ok(())
}

#[tokio::test]
async fn the_duration_of_an_execution_is_its_time_or_else_the_sum_of_its_tests() -> Result<()> {
    let world = World::new().await?;
    let lasting = |identifier: &str, start: Option<&str>, seconds: f64| {
        json!({
            "Identifier": identifier, "Result": "Passed", "DurationInSec": seconds,
            "StartDateTime": start,
        })
    };
    let at = "2026-03-02T09:30:00Z";
    for (start, expected) in [(Some(at), 5.0), (None, 8.0)] {
        let results = json!([lasting("a", start, 3.0), lasting("b", start, 5.0)]);
        let execution = run(&world, "main", results).await?;
        let entry = summary(&world, &execution).await?.execution.unwrap();
        assert!((entry.duration_in_sec - expected).abs() < 1e-6, "{}", entry.duration_in_sec);
    }
    Ok(())
}
