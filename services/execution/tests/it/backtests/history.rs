//! Random executions, and their verdicts.

use anyhow::Result;
use assay_judge::Outcome;
use assay_proto::{
    catalog::{GateInput, TestSetInput},
    execution::{CreateKnownFailureInput, Execution, OpenExecutionInput, VerdictState},
};
use serde_json::{Value, json};

use super::{
    generator::{Behaviour, Random},
    retried,
};
use crate::{
    changes::{failed, passed, reports},
    judgement::verdict,
    known_failures::{create, in_days},
    world::World,
};

/// Number of tests of an execution.
const TESTS: usize = 14;

/// Returns a gate with all rules.
pub(super) fn gate_of_stories() -> GateInput {
    GateInput {
        max_new_failures: Some(0),
        allow_known_failures: Some(true),
        max_flaky_tests: Some(2),
        min_pass_rate: Some(60.0),
        required_test_cases: vec!["test 3".to_owned(), "test 4".to_owned()],
        ..GateInput::default()
    }
}

pub(super) async fn set_gate(world: &World, gate: GateInput) -> Result<()> {
    let set = TestSetInput { gate: Some(gate), ..TestSetInput::default() };
    world.change_set(set, &["Gate"]).await
}

/// Returns the states of the verdicts of executions.
pub(super) async fn states(world: &World, executions: &[Execution]) -> Result<Vec<VerdictState>> {
    let mut states = Vec::new();
    for execution in executions {
        states.push(verdict(world, execution).await?.state());
    }
    Ok(states)
}

/// Runs tests of all kinds, some of them flaky, on two branches: with retries, partial runs, outages, and
/// executions that are canceled or end before all results are there. In the middle, a failure becomes known.
pub(super) async fn random_executions(
    world: &World,
    runs: usize,
    seed: u64,
) -> Result<Vec<Execution>> {
    let random = &mut Random::new(seed);
    let tests: Vec<Behaviour> = (0..TESTS).map(|test| behaviour(test, runs, random)).collect();
    let mut executions = Vec::new();
    for run in 0..runs {
        let branch = if random.percent(30) { "feature" } else { "main" };
        let is_outage = random.percent(5);
        let input = OpenExecutionInput {
            project: "Shop".to_owned(),
            test_set: "Nightly".to_owned(),
            branch: Some(branch.to_owned()),
            commit: random.percent(30).then(|| (run / 3).to_string()),
            ..OpenExecutionInput::default()
        };
        let execution = world.open(input).await?;
        let mut results = Vec::new();
        for (test, behaviour) in tests.iter().enumerate() {
            let is_left_out = random.percent(behaviour.left_out);
            let outcome = behaviour.outcome(run, random);
            if !is_left_out {
                let outcome = if is_outage { Outcome::Failed } else { outcome };
                results.extend(result(&format!("test {test}"), outcome));
            }
        }
        if random.percent(5) {
            results.push(json!({ "Identifier": "late", "Result": "NotExecuted" }));
        }
        world.report(&execution.id, Value::Array(results)).await?;
        if run == runs / 2 {
            make_known(world, &executions).await?;
        }
        if random.percent(7) {
            world.cancel(&execution.id).await?;
            executions.push(execution);
        } else {
            executions.push(world.complete(&execution.id).await?);
        }
    }
    Ok(executions)
}

fn behaviour(test: usize, runs: usize, random: &mut Random) -> Behaviour {
    let mut behaviour = Behaviour { left_out: 5, ..Behaviour::default() };
    match test {
        0..3 => {
            behaviour.flake_rate = [10, 20, 40][test];
            behaviour.is_retried = test == 1;
        }
        3..7 => behaviour.broken = Some((5 + random.below(runs - 5), 1 + random.below(4))),
        _ => {}
    }
    behaviour
}

fn result(test: &str, outcome: Outcome) -> Vec<Value> {
    match outcome {
        Outcome::Passed => vec![passed(test)],
        Outcome::PassedOnRetry => retried(test).into(),
        Outcome::Failed => vec![failed(test, "lost")],
    }
}

/// Mutes the latest failure of a flaky test.
async fn make_known(world: &World, executions: &[Execution]) -> Result<()> {
    for execution in executions.iter().rev() {
        let reports = reports(world, execution).await?;
        let flaky = |identifier: &str| ["test 0", "test 2"].contains(&identifier);
        let failing = reports
            .into_iter()
            .find(|report| flaky(&report.test_case_identifier) && !report.fingerprint.is_empty());
        if let Some(report) = failing {
            let input = CreateKnownFailureInput {
                fingerprint: report.fingerprint,
                test_case_id: Some(report.test_case_id),
                muted_until: Some(in_days(1)),
                ..CreateKnownFailureInput::default()
            };
            create(world, input).await?;
            return Ok(());
        }
    }
    Ok(())
}
