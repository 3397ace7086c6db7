//! Turns the reports of test tools into completed executions.

use std::collections::HashMap;

use assay_auth::Caller;
use assay_events::ExecutionAction;
use assay_formats::Test;
use assay_proto::{
    ExecutionId, Fault, InstanceId, ProjectId, TestSetId,
    catalog::{ReportedTestCase, Snapshot, SnapshotTarget},
    execution::{ExecutionMode, UploadResultsTarget},
};
use assay_runtime::body::{Body, Intake, Memory};
use aws_lc_rs::digest;
use sqlx::PgTransaction;
use tonic::Status;

use crate::{
    catalog::Catalog,
    execution::{self, rules::IdempotentRequest},
    instance::{
        self,
        steps::{StoredStep, Writer},
    },
    progress::{
        execution::ExecutionState,
        instance::{Detail, NewInstance, Outcome},
        report::TestReportState,
    },
    result::rules::shifted,
    settle::events::announce,
    test_report,
};

/// Maximum number of tests in an upload.
const MOST_TESTS: usize = 100_000;

/// Number of instances that one statement inserts.
const INSTANCES_IN_STATEMENT: usize = 10_000;

/// A test case as it was uploaded. Each time that the files name it is an instance.
pub(crate) struct UploadedCase {
    case: ReportedTestCase,
    instances: Vec<(Outcome, Detail)>,
}

/// Reads one or several files. Returns their test cases and their SHA-256 digest.
pub(crate) fn read(mut body: Body) -> Result<(Vec<UploadedCase>, Vec<u8>), Fault> {
    let digest = digest(&body);
    let (mut cases, mut indexes) = (Vec::<UploadedCase>::new(), HashMap::new());
    let (mut writer, mut tests) = (Writer::new()?, 0);
    loop {
        assay_formats::read(&mut body, |test| {
            tests += 1;
            if tests > MOST_TESTS {
                let reason = format!("the report has more than {MOST_TESTS} tests");
                return Err(Fault::Refused { code: "too_many_tests", reason });
            }
            let index = *indexes.entry(test.identifier()).or_insert_with_key(|identifier| {
                let case = ReportedTestCase { identifier: identifier.clone(), name: test.title() };
                cases.push(UploadedCase { case, instances: Vec::new() });
                cases.len() - 1
            });
            cases[index].add(&test, &mut writer)
        })?;
        if !body.next_file() {
            break;
        }
    }
    if cases.is_empty() {
        let reason = "the report has no tests".to_owned();
        return Err(Fault::Refused { code: "no_tests", reason });
    }
    Ok((cases, digest))
}

fn digest(body: &Body) -> Vec<u8> {
    let mut digest = digest::Context::new(&digest::SHA256);
    for file in body.files() {
        let size: usize = file.clone().map(<[u8]>::len).sum();
        digest.update(&size.to_le_bytes());
        file.for_each(|part| digest.update(part));
    }
    digest.finish().as_ref().to_vec()
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
        let steps: Vec<StoredStep> = test.steps().into_iter().map(StoredStep::from).collect();
        let steps = match writer.write(&steps)? {
            Some(steps) => steps,
            // The steps are too large. The first one always fits.
            None => writer.write(&steps[..1])?.unwrap_or_default(),
        };
        self.instances.push((outcome, Detail { steps, ..Detail::default() }));
        Ok(())
    }
}

/// Has the catalog create missing test cases and add them to the test set. Returns the copy of the
/// cases, in the same order.
pub(crate) async fn adopt_cases(
    catalog: &Catalog,
    caller: &Caller,
    target: &UploadResultsTarget,
    cases: &[UploadedCase],
    intake: &Intake,
) -> Result<(Snapshot, Memory), Status> {
    let target = SnapshotTarget {
        project_id: target.project_id.clone(),
        test_set_id: target.test_set_id.clone(),
        subject_id: target.subject_id.clone(),
        environment_id: target.environment_id.clone(),
    };
    let reported = cases.iter().map(|case| case.case.clone()).collect();
    let (snapshot, memory) = catalog.adopt(caller, target, reported, intake).await?;
    let copied = snapshot.test_cases.iter().map(|copy| &copy.identifier);
    if copied.eq(cases.iter().map(|case| &case.case.identifier)) {
        return Ok((snapshot, memory));
    }
    Err(Fault::internal("the catalog copied other test cases than requested").into())
}

/// Stores a completed execution with its reports and instances.
pub(crate) async fn store(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    (project, set): (ProjectId, TestSetId),
    tags: Option<String>,
    mut snapshot: Snapshot,
    cases: Vec<UploadedCase>,
    idempotent: Option<&IdempotentRequest>,
) -> Result<ExecutionId, Fault> {
    let customer = caller.customer;
    let copies = std::mem::take(&mut snapshot.test_cases);
    let numbers = test_report::store::count(tx, customer, &copies).await?;
    let mode = ExecutionMode::External;
    let mut state = ExecutionState::new(caller, project, set, snapshot, tags, mode);
    state.expect(cases.len());
    let (mut reports, mut instances) = (Vec::with_capacity(cases.len()), Vec::new());
    for ((case, copy), number) in cases.into_iter().zip(&copies).zip(numbers) {
        let requested = i32::try_from(case.instances.len()).unwrap_or(i32::MAX);
        let mut report = TestReportState::new(copy, number, requested);
        for (outcome, detail) in case.instances {
            report.add(&outcome)?;
            state.add(&outcome);
            let report = reports.len();
            instances.push(NewInstance { id: InstanceId::new(), report, outcome, detail });
        }
        state.end_report(report.result());
        reports.push(report);
    }
    state.complete();

    let id = execution::store::insert(tx, caller, &mut state, idempotent).await?;
    test_report::store::insert(tx, customer, id, &copies, &reports).await?;
    for part in instances.chunks(INSTANCES_IN_STATEMENT) {
        instance::store::insert(tx, customer, &reports, part).await?;
        instance::store::insert_details(tx, customer, &reports, part).await?;
    }
    let finished: Vec<_> = reports.into_iter().map(|report| report.published).collect();
    announce(tx, customer, &state, ExecutionAction::Completed, &finished).await?;
    Ok(id)
}
