//! Makes a completed execution of what a test tool has reported.

use std::collections::HashMap;

use assay_auth::Caller;
use assay_proto::{
    ExecutionId, Fault, InstanceId, TestResult,
    catalog::{ReportedTestCase, Snapshot, TakeSnapshotRequest},
    execution::{ExecutionMode, UploadResultsTarget},
};
use assay_runtime::body::Body;
use sqlx::PgTransaction;
use tonic::Status;

use crate::{
    catalog::Catalog,
    execution::{self, Run, announce},
    instance::{
        self, Detail, NewInstance, Outcome,
        steps::{StoredStep, Writer},
    },
    junit::{self, Attempt, OUTPUT, Test},
    result::rules::shifted,
    test_report::{self, Progress},
};

/// How many tests one upload may bring.
const MOST_TESTS: usize = 100_000;

/// How many instances one statement writes.
const INSTANCES_IN_STATEMENT: usize = 10_000;

/// A test case as it was reported: each time that the files name it is an instance.
pub(crate) struct UploadedCase {
    case: ReportedTestCase,
    instances: Vec<(Outcome, Detail)>,
}

/// Reads one or several files. A test that they name more than once was run that often.
pub(crate) fn read(mut body: Body) -> Result<Vec<UploadedCase>, Fault> {
    let (mut cases, mut places) = (Vec::<UploadedCase>::new(), HashMap::new());
    let (mut writer, mut tests) = (Writer::new()?, 0);
    loop {
        junit::read(&mut body, |test| {
            tests += 1;
            if tests > MOST_TESTS {
                let reason = format!("there are more than {MOST_TESTS} tests");
                return Err(Fault::Refused { code: "too_many_tests", reason });
            }
            let place = *places.entry(test.identifier()).or_insert_with_key(|identifier| {
                let case = ReportedTestCase { identifier: identifier.clone(), name: test.title() };
                cases.push(UploadedCase { case, instances: Vec::new() });
                cases.len() - 1
            });
            cases[place].add(&test, &mut writer)
        })?;
        if !body.next_file().map_err(Fault::internal)? {
            break;
        }
    }
    if cases.is_empty() {
        let reason = "there are no tests in the report".to_owned();
        return Err(Fault::Refused { code: "no_tests", reason });
    }
    Ok(cases)
}

impl UploadedCase {
    fn add(&mut self, test: &Test, writer: &mut Writer) -> Result<(), Fault> {
        let outcome = Outcome {
            instance_nr: i32::try_from(self.instances.len() + 1).unwrap_or(i32::MAX),
            result: test.result(),
            start_date_time: test.start,
            finish_date_time: test.start.and_then(|start| shifted(start, test.seconds)),
            duration_in_sec: test.seconds,
        };
        let steps = steps(test);
        let steps = match writer.write(&steps)? {
            Some(steps) => steps,
            // Too much to tell; the first step always fits.
            None => writer.write(&steps[..1])?.unwrap_or_default(),
        };
        self.instances.push((outcome, Detail { steps, ..Detail::default() }));
        Ok(())
    }
}

/// Tells what happened, so that a person can read it step by step: one step for each thing that
/// went wrong, and one for a test that passed (in the end).
fn steps(test: &Test) -> Vec<StoredStep> {
    let tries = test.problems.iter().any(|problem| problem.kind.attempt != Attempt::Decisive);
    let input = test.path().join(" / ");
    let step = |number: usize, result: TestResult, actual_result: String| StoredStep {
        step_nr: i32::try_from(number).unwrap_or(i32::MAX),
        result: result.into(),
        test_input: if tries { format!("{input} (attempt {number})") } else { input.clone() },
        actual_result,
        ..StoredStep::default()
    };
    let mut steps: Vec<StoredStep> = test
        .problems
        .iter()
        .zip(1..)
        .map(|(problem, number)| StoredStep {
            duration_in_sec: problem.seconds.unwrap_or_default(),
            ..step(number, problem.kind.result(), described(&problem.message, &problem.text))
        })
        .collect();
    let result = test.result();
    if matches!(result, TestResult::Passed | TestResult::Canceled) {
        let reason = test.skipped.clone().unwrap_or_default();
        steps.push(step(steps.len() + 1, result, reason));
    }
    // The time of the test is that of the attempt which counts.
    let decisive = if result == TestResult::Passed { steps.len() - 1 } else { 0 };
    steps[decisive].duration_in_sec = test.seconds;
    if let Some(last) = steps.last_mut()
        && !test.problems.is_empty()
        && !test.output.trim().is_empty()
    {
        let output = format!("{OUTPUT}{}", test.output.trim());
        last.actual_result = described(&last.actual_result, &output);
    }
    steps
}

/// A message and a text, of which the one often begins with the other.
fn described(message: &str, text: &str) -> String {
    let (message, text) = (message.trim(), text.trim());
    if message.is_empty() || text.starts_with(message) {
        text.to_owned()
    } else if text.is_empty() {
        message.to_owned()
    } else {
        format!("{message}\n\n{text}")
    }
}

/// Has the catalog make and include what it does not know yet, and copies all.
pub(crate) async fn adopt(
    catalog: &Catalog,
    caller: &Caller,
    target: &UploadResultsTarget,
    cases: &[UploadedCase],
) -> Result<Snapshot, Status> {
    let place = TakeSnapshotRequest {
        project_id: target.project_id.clone(),
        test_set_id: target.test_set_id.clone(),
        subject_id: target.subject_id.clone(),
        environment_id: target.environment_id.clone(),
        skip_not_ready: false,
    };
    let named = cases.iter().map(|case| case.case.clone()).collect();
    let snapshot = catalog.adopt(caller, place, named).await?;
    let copied = snapshot.test_cases.iter().map(|copy| &copy.identifier);
    if copied.eq(cases.iter().map(|case| &case.case.identifier)) {
        return Ok(snapshot);
    }
    Err(Fault::internal("the catalog copied other test cases than those that it was asked for")
        .into())
}

/// Stores a completed execution with its reports and instances.
pub(crate) async fn store(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    target: UploadResultsTarget,
    mut snapshot: Snapshot,
    cases: Vec<UploadedCase>,
) -> Result<ExecutionId, Fault> {
    let customer = caller.customer;
    let copies = std::mem::take(&mut snapshot.test_cases);
    let numbers = test_report::store::count(tx, customer, &copies).await?;
    let place = TakeSnapshotRequest {
        project_id: target.project_id,
        test_set_id: target.test_set_id,
        ..TakeSnapshotRequest::default()
    };
    let mut run = Run::new(caller, place, snapshot, target.tags, ExecutionMode::External);
    run.expect(cases.len());
    let (mut reports, mut instances) = (Vec::with_capacity(cases.len()), Vec::new());
    for ((case, copy), number) in cases.into_iter().zip(&copies).zip(numbers) {
        let requested = i32::try_from(case.instances.len()).unwrap_or(i32::MAX);
        let mut progress = Progress::new(copy, number, requested);
        for (outcome, detail) in case.instances {
            progress.add(&outcome)?;
            run.add(&outcome);
            let report = reports.len();
            instances.push(NewInstance { id: InstanceId::new(), report, outcome, detail });
        }
        run.end_report(progress.result());
        reports.push(progress);
    }
    run.complete();

    let id = execution::store::insert(tx, caller, &mut run, None).await?;
    test_report::store::insert(tx, customer, id, &copies, &reports).await?;
    for part in instances.chunks(INSTANCES_IN_STATEMENT) {
        instance::store::insert(tx, customer, &reports, part).await?;
        instance::store::insert_details(tx, customer, &reports, part).await?;
    }
    let finished: Vec<_> = reports.into_iter().map(|report| report.state).collect();
    announce(tx, customer, &run, "Completed", &finished).await?;
    Ok(id)
}
