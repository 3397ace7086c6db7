//! Backtests: the verdicts that ended executions would have with another gate.

#[path = "../../judge/examples/truth/generator.rs"]
#[expect(dead_code, reason = "only single tests are generated, not populations")]
mod generator;
mod history;
mod scale;
#[path = "../../judge/examples/truth/score.rs"]
#[expect(dead_code, reason = "only the generator needs it")]
mod score;

use anyhow::Result;
use assay_proto::{
    Timestamp,
    catalog::GateInput,
    execution::{
        Backtest, BacktestDifference, BacktestGateRequest, BacktestInput, Execution,
        OpenExecutionInput, VerdictState, backtest_service_client::BacktestServiceClient,
    },
};
use assay_testkit::TestUser;
use chrono::TimeDelta;
use serde_json::{Value, json};
use tonic::{Code, Status};

use self::history::{gate_of_stories, random_executions, set_gate, states};
use crate::{
    changes::{failed, passed, run},
    world::{World, fields},
};

/// Rates of failures of flaky tests, in percent.
const RATES: [u32; 7] = [1, 2, 5, 10, 20, 30, 50];

async fn backtest_by(
    world: &World,
    user: &TestUser,
    backtest: BacktestInput,
) -> Result<Backtest, Status> {
    let request = BacktestGateRequest {
        project_id: world.project.clone(),
        test_set_id: world.set.clone(),
        backtest: Some(backtest),
    };
    let mut backtests = BacktestServiceClient::new(world.execution.clone());
    Ok(backtests.backtest_gate(user.call(request)).await?.into_inner())
}

async fn backtest(world: &World, gate: Option<GateInput>) -> Result<Backtest, Status> {
    backtest_by(world, &world.user, BacktestInput { gate, ..BacktestInput::default() }).await
}

/// Runs a test once for each message, the first one first; an empty message passes.
async fn runs(world: &World, messages: &[&str]) -> Result<Vec<Execution>> {
    let mut executions = Vec::new();
    for message in messages {
        let result = if message.is_empty() { passed("a") } else { failed("a", message) };
        executions.push(run(world, "main", json!([result, passed("b")])).await?);
    }
    Ok(executions)
}

/// Returns what decides about an execution.
fn decided(difference: &BacktestDifference) -> (String, VerdictState, Vec<&str>) {
    let rules = difference.rules.iter().map(|rule| rule.message.as_str()).collect();
    (difference.execution_id.clone(), difference.replayed(), rules)
}

#[tokio::test]
async fn a_required_test_case_was_executed_if_its_alias_was_reported() -> Result<()> {
    let world = World::new().await?;
    let gate =
        || GateInput { required_test_cases: vec!["pays".to_owned()], ..GateInput::default() };
    set_gate(&world, gate()).await?;
    let first = run(&world, "main", json!([passed("pays")])).await?;
    world.alias(&first.test_reports[0].test_case_id, "pays by card").await?;

    let renamed = run(&world, "main", json!([passed("pays by card")])).await?;
    let without = run(&world, "main", json!([passed("ships")])).await?;

    let replayed = backtest(&world, Some(gate())).await?;
    let expected = [VerdictState::Passed, VerdictState::Passed, VerdictState::Failed];
    assert_eq!(states(&world, &[first, renamed, without]).await?, expected);
    assert_eq!((replayed.passed, replayed.failed, replayed.differences.len()), (2, 1, 0));
    Ok(())
}

#[tokio::test]
async fn another_gate_shows_what_it_would_have_blocked_and_let_through() -> Result<()> {
    let world = World::new().await?;
    let green = run(&world, "main", json!([passed("a"), passed("b")])).await?;
    let red = run(&world, "feature", json!([failed("a", "lost"), failed("b", "slow")])).await?;

    let present = backtest(&world, None).await?;
    assert_eq!((present.executions, present.passed, present.failed), (2, 1, 1));
    assert_eq!((present.blocked, present.let_through, present.next_cursor), (0, 0, None));

    let generous = GateInput { max_new_failures: Some(2), ..GateInput::default() };
    let generous = backtest(&world, Some(generous)).await?;
    assert_eq!((generous.passed, generous.let_through), (2, 1));
    let [through] = &generous.differences[..] else { panic!("{generous:?}") };
    assert_eq!(
        decided(through),
        (red.id.clone(), VerdictState::Passed, vec!["2 new failures, at most 0 allowed"])
    );
    assert_eq!((through.verdict(), through.branch()), (VerdictState::Failed, "feature"));
    assert_eq!(through.request_time, red.request_time);

    let strict = vec!["c".to_owned(), "a".to_owned()];
    let strict = GateInput { required_test_cases: strict, ..GateInput::default() };
    let strict = backtest(&world, Some(strict)).await?;
    assert_eq!((strict.failed, strict.blocked), (2, 1));
    assert_eq!(
        decided(&strict.differences[0]),
        (green.id, VerdictState::Failed, vec!["1 of 2 not executed: c"])
    );
    Ok(())
}

#[tokio::test]
async fn executions_whose_results_are_those_of_another_one_are_not_replayed() -> Result<()> {
    let world = World::new().await?;
    run(&world, "main", json!([passed("a")])).await?;
    run(&world, "part", json!([passed("a")])).await?;
    // As a merge of launches marks it.
    world.change("update execution set is_merged = true where branch = 'part'").await?;
    assert_eq!(backtest(&world, None).await?.executions, 1);
    Ok(())
}

#[tokio::test]
async fn other_thresholds_judge_failures_again_by_the_history_that_they_had() -> Result<()> {
    let world = World::new().await?;
    let flaky = ["", "lost", "", "lost", "", "lost", "", "lost"];
    let executions = runs(&world, &flaky).await?;
    let states = states(&world, &executions).await?;
    let failed = states.iter().filter(|state| **state == VerdictState::Failed).count();
    assert_eq!(failed, 2, "the last two failures are flaky: {states:?}");

    let three = GateInput { flaky_after_breaks: Some(3), ..GateInput::default() };
    let three = backtest(&world, Some(three)).await?;
    let [blocked] = &three.differences[..] else { panic!("{three:?}") };
    assert_eq!(
        decided(blocked),
        (executions[5].id.clone(), VerdictState::Failed, vec!["1 new failure, at most 0 allowed"])
    );

    let no_flaky = GateInput { max_flaky_tests: Some(0), ..GateInput::default() };
    assert_eq!(backtest(&world, Some(no_flaky.clone())).await?.blocked, 2);
    let neither = GateInput { flaky_after_breaks: Some(9), max_new_failures: Some(1), ..no_flaky };
    let neither = backtest(&world, Some(neither)).await?;
    assert_eq!((neither.passed, neither.let_through), (8, 2), "no failure is flaky: {neither:?}");
    Ok(())
}

#[tokio::test]
async fn another_cause_of_a_test_that_is_not_flaky_any_more_is_a_new_failure() -> Result<()> {
    let world = World::new().await?;
    let executions = runs(&world, &["", "lost", "", "lost", "", "lost", "gone", "lost"]).await?;
    let states = states(&world, &executions).await?;
    assert_eq!(states[5..], [VerdictState::Passed; 3], "a is flaky, and then broken");

    let stable = GateInput { flaky_after_breaks: Some(9), ..GateInput::default() };
    let stable = backtest(&world, Some(stable)).await?;
    let blocked: Vec<_> = stable.differences.iter().map(|one| one.execution_id.as_str()).collect();
    assert_eq!(blocked, [&executions[6].id, &executions[5].id], "gone is another cause");
    Ok(())
}

#[tokio::test]
async fn the_present_gate_gives_every_verdict_again() -> Result<()> {
    let world = World::new().await?;
    set_gate(&world, gate_of_stories()).await?;
    let executions = random_executions(&world, 90, 1).await?;
    let states = states(&world, &executions).await?;
    let count = |state| states.iter().filter(|one| **one == state).count();

    let replayed = backtest(&world, None).await?;

    assert_eq!(replayed.executions, 90);
    assert_eq!(replayed.differences, []);
    assert_eq!(usize::try_from(replayed.passed)?, count(VerdictState::Passed));
    assert_eq!(usize::try_from(replayed.failed)?, count(VerdictState::Failed));
    assert!(replayed.passed > 10 && replayed.failed > 10, "{replayed:?}");
    Ok(())
}

#[tokio::test]
async fn a_replay_finds_the_verdicts_of_executions_with_that_gate() -> Result<()> {
    let world = World::new().await?;
    set_gate(&world, gate_of_stories()).await?;
    let executions = random_executions(&world, 60, 2).await?;
    let mut judged_again = 0;
    for (breaks, longest, within) in [(3, 1, 50), (2, 10, 20), (25, 2, 50), (2, 2, 5)] {
        let gate = GateInput {
            flaky_after_breaks: Some(breaks),
            longest_flaky_break: Some(longest),
            flaky_within_runs: Some(within),
            ..gate_of_stories()
        };
        let replayed = backtest(&world, Some(gate.clone())).await?;
        let before = states(&world, &executions).await?;

        // The executions as they would have been with that gate.
        sqlx::query("update execution set gate = $1")
            .bind(serde_json::to_value(&gate)?)
            .execute(&world.db)
            .await?;
        assay_execution::rebuild(&world.db).await?;

        let after = states(&world, &executions).await?;
        let differing = executions.iter().zip(before.iter().zip(&after)).rev();
        let differing = differing.filter(|(_, (before, after))| before != after);
        let differing: Vec<_> = differing.map(|(execution, _)| execution.id.as_str()).collect();
        let found: Vec<_> = replayed.differences.iter().map(|one| &one.execution_id[..]).collect();
        assert_eq!(found, differing, "{gate:?}");
        let passed = after.iter().filter(|state| **state == VerdictState::Passed).count();
        assert_eq!(usize::try_from(replayed.passed)?, passed, "{gate:?}");
        judged_again += found.len();
    }
    assert!(judged_again > 5, "{judged_again} verdicts differ");
    Ok(())
}

#[tokio::test]
async fn a_period_and_a_cursor_select_executions() -> Result<()> {
    let world = World::new().await?;
    let executions = runs(&world, &["", "", ""]).await?;
    let time = |index: usize| executions[index].request_time;
    let count = async |input: BacktestInput| {
        Ok::<_, Status>(backtest_by(&world, &world.user, input).await?.executions)
    };
    let period = |from, to| BacktestInput { from, to, ..BacktestInput::default() };
    assert_eq!(count(period(None, None)).await?, 3);
    assert_eq!(count(period(time(1), None)).await?, 2);
    assert_eq!(count(period(time(1), time(2))).await?, 1);
    assert_eq!(count(period(None, time(1))).await?, 1);
    let cursor = Some(executions[2].id.clone());
    assert_eq!(count(BacktestInput { cursor, ..BacktestInput::default() }).await?, 2);

    let running = OpenExecutionInput {
        project: "Shop".to_owned(),
        test_set: "Nightly".to_owned(),
        ..OpenExecutionInput::default()
    };
    let running = world.open(running).await?;
    assert_eq!(count(period(None, None)).await?, 3, "it has not ended");
    world.cancel(&running.id).await?;
    assert_eq!(count(period(None, None)).await?, 4);
    world.change("delete from execution_tag").await?;
    world
        .change(
            "update execution set request_time = now() - interval '91 days',
                 id = overlay(id::text placing
                     left(first_id_at(now() - interval '91 days')::text, 13) from 1 for 13)::uuid
             where status = 'Canceled'",
        )
        .await?;
    assert_eq!(count(period(None, None)).await?, 3, "the default are 90 days");
    let long_ago = time(0).map(|Timestamp(time)| Timestamp(time - TimeDelta::days(100)));
    assert_eq!(count(period(long_ago, None)).await?, 4);
    Ok(())
}

#[tokio::test]
async fn a_backtest_is_refused_with_reasons() -> Result<()> {
    let world = World::new().await?;
    let gate = GateInput { flaky_after_breaks: Some(1), ..GateInput::default() };
    let refused = backtest(&world, Some(gate)).await.unwrap_err();
    assert_eq!(fields(&refused), ["Gate/FlakyAfterBreaks"]);
    let input = BacktestInput { cursor: Some("last".into()), ..BacktestInput::default() };
    let refused = backtest_by(&world, &world.user, input).await.unwrap_err();
    assert_eq!(fields(&refused), ["Cursor"]);

    let all = BacktestInput::default;
    let stranger = world.stranger().await;
    let refused = backtest_by(&world, &stranger, all()).await.unwrap_err();
    assert_eq!((refused.code(), refused.message()), (Code::NotFound, "no such project"));
    let engine = world.colleague("Execute").await;
    let refused = backtest_by(&world, &engine, all()).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    world.delete_set().await?;
    let refused = backtest_by(&world, &world.user, all()).await.unwrap_err();
    assert_eq!((refused.code(), refused.message()), (Code::NotFound, "no such test set"));
    Ok(())
}

/// Returns a result that passed after a failed attempt.
fn retried(test: &str) -> [Value; 2] {
    let attempt = |mut result: Value, attempt| {
        result["Attempt"] = json!(attempt);
        result
    };
    [attempt(failed(test, "lost"), 1), attempt(passed(test), 2)]
}
