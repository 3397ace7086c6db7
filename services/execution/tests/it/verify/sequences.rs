//! After any sequence of operations, nothing differs from what follows from the results.

use anyhow::{Result, ensure};
use assay_proto::{
    ReportStatus,
    execution::{CaseState, MuteInput, OpenExecutionInput, ReviewInput},
};
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, TestRunner},
};
use serde_json::json;
use tonic::{Code, Status};

use crate::{
    changes::reports,
    known_failures::{in_days, review},
    test_case_states::{enable, set},
    world::{World, instance},
};

/// Number of sequences to try.
const SEQUENCES: u32 = 24;

const RESULTS: [&str; 5] = ["Passed", "Failed", "Error", "Canceled", "Aborted"];

/// An operation of a client. Executions are numbered in the order of their creation.
#[derive(Clone, Debug)]
enum Operation {
    Start,
    Dispatch,
    Open {
        key: bool,
    },
    Upload {
        failed: bool,
    },
    Report {
        execution: usize,
        case: u8,
        instance: i32,
        attempt: i32,
        result: usize,
    },
    /// An engine leases work and ends the lease.
    Engine {
        result: Option<usize>,
        end: End,
    },
    Review {
        execution: usize,
        status: ReportStatus,
        mute: bool,
    },
    /// Somebody mutes, skips or enables a test case.
    State {
        case: u8,
        state: CaseState,
    },
    Complete {
        execution: usize,
    },
    Cancel {
        execution: usize,
    },
    Reconcile,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Completed,
    Failed,
    Released,
    Held,
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::{
        Cancel, Complete, Dispatch, Engine, Open, Reconcile, Report, Review, Start, State, Upload,
    };
    let status = prop::sample::select(vec![
        ReportStatus::Accepted,
        ReportStatus::Rejected,
        ReportStatus::InReview,
        ReportStatus::Investigation,
    ]);
    let state =
        prop::sample::select(vec![CaseState::Enabled, CaseState::Muted, CaseState::Skipped]);
    let end = prop::sample::select(vec![End::Completed, End::Failed, End::Released, End::Held]);
    prop_oneof![
        2 => Just(Start),
        2 => Just(Dispatch),
        3 => any::<bool>().prop_map(|key| Open { key }),
        1 => any::<bool>().prop_map(|failed| Upload { failed }),
        12 => (0..8_usize, 0..5_u8, 1..3_i32, 1..3_i32, 0..RESULTS.len()).prop_map(
            |(execution, case, instance, attempt, result)| Report {
                execution, case, instance, attempt, result
            }
        ),
        4 => (prop::option::of(0..RESULTS.len()), end)
            .prop_map(|(result, end)| Engine { result, end }),
        3 => (0..8_usize, status, any::<bool>())
            .prop_map(|(execution, status, mute)| Review { execution, status, mute }),
        3 => (0..5_u8, state).prop_map(|(case, state)| State { case, state }),
        1 => (0..8_usize).prop_map(|execution| Complete { execution }),
        1 => (0..8_usize).prop_map(|execution| Cancel { execution }),
        1 => Just(Reconcile),
    ]
}

/// Ignores refusals.
fn accept<T>(done: Result<T, Status>) -> Result<Option<T>> {
    match done {
        Ok(value) => Ok(Some(value)),
        Err(status) => {
            let failed = matches!(status.code(), Code::Internal | Code::Unknown | Code::DataLoss);
            ensure!(!failed, "{status}");
            Ok(None)
        }
    }
}

async fn perform(world: &World, ids: &mut Vec<String>, operation: &Operation) -> Result<()> {
    match operation {
        Operation::Start => ids.push(world.start().await?.id),
        Operation::Dispatch => ids.push(world.dispatch().await?.id),
        Operation::Open { key } => {
            let input = OpenExecutionInput {
                project: "Shop".to_owned(),
                test_set: "Nightly".to_owned(),
                key: key.then(|| "build".to_owned()),
                ..OpenExecutionInput::default()
            };
            ids.extend(accept(world.open(input).await)?.map(|execution| execution.id));
        }
        Operation::Upload { failed } => {
            let failure = if *failed { "<failure message='lost'/>" } else { "" };
            let report = format!("<testsuite><testcase name='a'>{failure}</testcase></testsuite>");
            ids.extend(accept(world.upload(&[report.as_bytes()]).await)?.map(|one| one.id));
        }
        Operation::Report { execution, case, instance, attempt, result } => {
            let Some(id) = ids.get(*execution) else { return Ok(()) };
            let case = char::from(b'a' + case);
            let result = json!([{
                "Identifier": case.to_string(), "InstanceNr": instance, "Attempt": attempt,
                "Result": RESULTS[*result], "DurationInSec": 0.5,
                "Steps": [{ "StepNr": 1, "Result": RESULTS[*result], "ActualResult": "lost" }],
            }]);
            accept(world.report(id, result).await)?;
        }
        Operation::Engine { result, end } => lease(world, *result, *end).await?,
        Operation::Review { execution, status, mute } => {
            let Some(id) = ids.get(*execution) else { return Ok(()) };
            let execution = world.execution(id).await?;
            let ended = reports(world, &execution).await?.into_iter().filter(|report| {
                !matches!(
                    report.status(),
                    ReportStatus::NotExecuted | ReportStatus::Running | ReportStatus::Canceled
                )
            });
            let reports = ended.map(|report| report.id).take(2).collect();
            let until =
                mute.then(|| MuteInput { muted_until: Some(in_days(7)), ..Default::default() });
            let input = ReviewInput {
                reports,
                status: (*status).into(),
                known: until,
                ticket: Some("SHOP-1".to_owned()),
                ..ReviewInput::default()
            };
            accept(review(world, &execution, input).await)?;
        }
        Operation::State { case, state } => {
            let Some(id) = ids.first() else { return Ok(()) };
            let execution = world.execution(id).await?;
            let identifier = char::from(b'a' + case).to_string();
            let mut reports = execution.test_reports.iter();
            let report = reports.find(|report| report.test_case_identifier == identifier);
            let Some(case) = report.map(|report| &report.test_case_id) else { return Ok(()) };
            accept(match state {
                CaseState::Enabled => enable(world, case).await,
                state => set(world, case, *state).await,
            })?;
        }
        Operation::Complete { execution } => {
            let Some(id) = ids.get(*execution) else { return Ok(()) };
            accept(world.complete(id).await)?;
        }
        Operation::Cancel { execution } => {
            let Some(id) = ids.get(*execution) else { return Ok(()) };
            accept(world.cancel(id).await)?;
        }
        Operation::Reconcile => world.reconcile().await?,
    }
    Ok(())
}

async fn lease(world: &World, result: Option<usize>, end: End) -> Result<()> {
    let engine = world.engine();
    let Some(lease) = accept(engine.lease_one().await)? else { return Ok(()) };
    if let Some(result) = result {
        accept(engine.report(&lease.id, json!([instance(1, RESULTS[result])])).await)?;
    }
    accept(match end {
        End::Completed => engine.complete(&lease.id, false).await,
        End::Failed => engine.complete(&lease.id, true).await,
        End::Released => engine.release(&lease.id).await,
        End::Held => Ok(()),
    })?;
    Ok(())
}

async fn run(operations: &[Operation]) -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 2), ("c", 1)]).await?;
    let mut ids = Vec::new();
    for operation in operations {
        perform(&world, &mut ids, operation).await?;
    }
    let mut found = Vec::new();
    assay_execution::verify(&world.db, |one| found.push(one.to_string())).await?;
    ensure!(found.is_empty(), "{found:#?}");
    ensure!(assay_execution::rebuild(&world.db).await? == 0, "rebuild changed something");
    Ok(())
}

#[test]
fn after_any_operations_nothing_differs() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let config = Config {
        cases: SEQUENCES,
        failure_persistence: None,
        max_shrink_iters: 60,
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&vec(operation(), 5..40), |operations| {
            let done = runtime.block_on(run(&operations));
            done.map_err(|error| TestCaseError::fail(format!("{error:#}")))
        })
        .unwrap();
}
