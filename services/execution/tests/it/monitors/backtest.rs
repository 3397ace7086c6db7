//! Backtests of monitors do what the monitors have done.

use anyhow::Result;
use assay_execution::{evaluate_monitors, roll_up};
use assay_proto::execution::{
    BacktestMonitorRequest, MonitorBacktest, MonitorBacktestInput, MonitorInput, MonitorMeasure,
    backtest_service_client::BacktestServiceClient,
};
use serde_json::{Value, json};
use tonic::Status;

use super::{actions, create, recoveries, result};
use crate::{
    changes::{passed, run},
    world::{World, fields},
};

async fn backtest(world: &World, input: MonitorBacktestInput) -> Result<MonitorBacktest, Status> {
    let request =
        BacktestMonitorRequest { project_id: world.project.clone(), backtest: Some(input) };
    let mut backtests = BacktestServiceClient::new(world.execution.clone());
    Ok(backtests.backtest_monitor(world.user.call(request)).await?.into_inner())
}

/// Returns runs of a flaky, a broken and repaired, and a stable test, as letters from a generator with a seed.
fn histories(runs: usize) -> Vec<String> {
    let mut state = 7_u32;
    let mut below = move |limit: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % limit
    };
    let mut flaky = |rate: u32| -> String {
        let mut letter = || if below(100) < rate { ["F", "R"][below(2) as usize] } else { "P" };
        (0..runs).map(|_| letter()).collect()
    };
    let mut histories = vec![flaky(15), flaky(30), flaky(50)];
    let broken = runs / 3;
    histories.push(format!("PF{}{}", "F".repeat(broken), "P".repeat(runs - broken - 2)));
    histories.push("P".repeat(runs));
    histories
}

#[tokio::test]
async fn a_backtest_takes_the_actions_that_the_monitor_has_taken() -> Result<()> {
    let world = World::new().await?;
    let rate = MonitorInput {
        name: "Rate".to_owned(),
        measure: MonitorMeasure::FailureRate.into(),
        threshold: 20.0,
        dry_run: true,
        ..recoveries()
    };
    let flaky = MonitorInput { dry_run: true, ..recoveries() };
    let monitors = [
        (create(&world, rate.clone()).await?, rate),
        (create(&world, flaky.clone()).await?, flaky),
    ];
    let histories = histories(36);
    for nr in 0..36 {
        let letter = |history: &String| history.chars().nth(nr).unwrap();
        let results = histories
            .iter()
            .enumerate()
            .flat_map(|(test, history)| result(&format!("test {test}"), letter(history)));
        run(&world, "main", json!(results.collect::<Vec<Value>>())).await?;
        roll_up(&world.db).await?;
        evaluate_monitors(&world.db).await?;
    }
    world.change("update execution set archived = get_byte(uuid_send(id), 15) % 2 = 0").await?;
    for (monitor, input) in monitors {
        let taken = actions(&world, &monitor).await?;
        assert!(taken.len() > 3, "{taken:?}");
        let input = MonitorBacktestInput { monitor: Some(input), ..Default::default() };
        let replayed = backtest(&world, input).await?;
        let expected: Vec<_> = taken
            .iter()
            .rev()
            .map(|one| {
                (one.execution_id.clone(), one.test_case_id.clone(), one.action, &one.reason)
            })
            .collect();
        let found: Vec<_> = replayed
            .actions
            .iter()
            .map(|one| {
                (one.execution_id.clone(), one.test_case_id.clone(), one.action, &one.reason)
            })
            .collect();
        assert_eq!(sorted(found), sorted(expected));
        assert_eq!((replayed.executions, replayed.left_from), (36, None));
        let counted = replayed.raised + replayed.recovered + replayed.broken;
        assert_eq!(usize::try_from(counted)?, taken.len());
    }
    Ok(())
}

/// The actions after one execution have no order.
fn sorted<T: Ord>(mut actions: Vec<T>) -> Vec<T> {
    actions.sort();
    actions
}

#[tokio::test]
async fn a_backtest_needs_a_valid_monitor() -> Result<()> {
    let world = World::new().await?;
    let none = backtest(&world, MonitorBacktestInput::default()).await.unwrap_err();
    assert_eq!(fields(&none), ["Monitor"]);
    let wrong = MonitorInput { threshold: 0.0, ..recoveries() };
    let wrong = MonitorBacktestInput { monitor: Some(wrong), ..Default::default() };
    assert_eq!(fields(&backtest(&world, wrong).await.unwrap_err()), ["Threshold"]);
    let other = MonitorInput { branch: Some("other".to_owned()), ..recoveries() };
    let other = MonitorBacktestInput { monitor: Some(other), ..Default::default() };
    assert_eq!(backtest(&world, other).await?, MonitorBacktest::default());

    for branch in ["release/2.4", "release/2.5", "main", "released"] {
        run(&world, branch, json!([passed("a")])).await?;
    }
    for (branch, executions) in [("release/*", 2), ("release/2.4", 1), ("*", 4), ("*ele_se*", 0)] {
        let monitor = MonitorInput { branch: Some(branch.to_owned()), ..recoveries() };
        let input = MonitorBacktestInput { monitor: Some(monitor), ..Default::default() };
        assert_eq!(backtest(&world, input).await?.executions, executions, "{branch}");
    }
    Ok(())
}
