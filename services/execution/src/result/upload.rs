//! Makes a completed execution of what a test tool has reported.

use std::collections::HashMap;

use assay_auth::Caller;
use assay_junit::Test;
use assay_proto::{
    ExecutionId, Fault, InstanceId,
    catalog::{ReportedTestCase, Snapshot, TakeSnapshotRequest},
    execution::{ExecutionMode, UploadResultsTarget},
};
use assay_runtime::body::{Body, Intake, Memory};
use aws_lc_rs::digest;
use sqlx::PgTransaction;
use tonic::Status;

use crate::{
    catalog::Catalog,
    execution::{self, Run, announce, once::Once},
    instance::{
        self, Detail, NewInstance, Outcome,
        steps::{StoredStep, Writer},
    },
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

/// An upload that was read.
pub(crate) struct Uploaded {
    pub(crate) cases: Vec<UploadedCase>,
    /// The SHA-256 digest of the files: the same for the same ones.
    pub(crate) digest: Vec<u8>,
}

/// Reads one or several files. A test that they name more than once was run that often.
pub(crate) fn read(mut body: Body) -> Result<Uploaded, Fault> {
    let digest = digest(&body);
    let (mut cases, mut places) = (Vec::<UploadedCase>::new(), HashMap::new());
    let (mut writer, mut tests) = (Writer::new()?, 0);
    loop {
        assay_junit::read(&mut body, |test| {
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
        if !body.next_file() {
            break;
        }
    }
    if cases.is_empty() {
        let reason = "there are no tests in the report".to_owned();
        return Err(Fault::Refused { code: "no_tests", reason });
    }
    Ok(Uploaded { cases, digest })
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
            // Too much to tell; the first step always fits.
            None => writer.write(&steps[..1])?.unwrap_or_default(),
        };
        self.instances.push((outcome, Detail { steps, ..Detail::default() }));
        Ok(())
    }
}

/// Has the catalog make and include what it does not know yet, and copies all.
pub(crate) async fn adopt(
    catalog: &Catalog,
    caller: &Caller,
    target: &UploadResultsTarget,
    cases: &[UploadedCase],
    intake: &Intake,
) -> Result<(Snapshot, Memory), Status> {
    let place = TakeSnapshotRequest {
        project_id: target.project_id.clone(),
        test_set_id: target.test_set_id.clone(),
        subject_id: target.subject_id.clone(),
        environment_id: target.environment_id.clone(),
        skip_not_ready: false,
    };
    let named = cases.iter().map(|case| case.case.clone()).collect();
    let (snapshot, memory) = catalog.adopt(caller, place, named, intake).await?;
    let copied = snapshot.test_cases.iter().map(|copy| &copy.identifier);
    if copied.eq(cases.iter().map(|case| &case.case.identifier)) {
        return Ok((snapshot, memory));
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
    once: Option<&Once>,
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

    let id = execution::store::insert(tx, caller, &mut run, once).await?;
    test_report::store::insert(tx, customer, id, &copies, &reports).await?;
    for part in instances.chunks(INSTANCES_IN_STATEMENT) {
        instance::store::insert(tx, customer, &reports, part).await?;
        instance::store::insert_details(tx, customer, &reports, part).await?;
    }
    let finished: Vec<_> = reports.into_iter().map(|report| report.state).collect();
    announce(tx, customer, &run, "Completed", &finished).await?;
    Ok(id)
}
