//! Failures in PostgreSQL. Every statement is bound to one customer.

use assay_fingerprint::{Failure as Cause, VERSION};
use assay_proto::{CustomerId, Fault, TestCaseId};
use sqlx::PgTransaction;
use uuid::Uuid;

use crate::{
    column::column,
    progress::{execution::ExecutionState, instance::NewInstance, report::TestReportState},
};

/// Returns the fingerprint and the headline of a failure. Without a message, the fingerprint is the
/// id of the test case, so that the failure has a cause of its own.
pub(super) fn identity(cause: Option<&Cause>, test_case: Uuid) -> (Vec<u8>, String) {
    match cause {
        Some(cause) => (cause.fingerprint.as_bytes().to_vec(), cause.headline.clone()),
        None => (test_case.as_bytes().to_vec(), String::new()),
    }
}

/// The number of the instance of a failure that is the engine's: it has none.
pub(super) const OF_ENGINE: i32 = 0;

/// A failure of a report to store.
struct NewFailure<'f> {
    report: &'f TestReportState,
    instance_nr: i32,
    fingerprint: Vec<u8>,
    headline: String,
}

impl<'f> NewFailure<'f> {
    fn new(
        report: &'f TestReportState,
        instance_nr: i32,
        cause: Option<&Cause>,
    ) -> Result<Self, Fault> {
        let test_case = TestCaseId::from_record(&report.published.test_case_id)?;
        let (fingerprint, headline) = identity(cause, test_case.0);
        Ok(Self { report, instance_nr, fingerprint, headline })
    }
}

/// Stores the failures among new instances of an execution.
pub async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
    reports: &[TestReportState],
    instances: impl Iterator<Item = &NewInstance>,
) -> Result<(), Fault> {
    let failed = instances.filter(|instance| instance.last.outcome.result.is_failure());
    let failure = |instance: &NewInstance| {
        let report = &reports[instance.report];
        NewFailure::new(report, instance.instance_nr, instance.last.cause.as_deref())
    };
    insert_all(tx, customer, state, &failed.map(failure).collect::<Result<Vec<_>, _>>()?).await
}

/// Stores the failures of engines that have ended reports.
pub async fn insert_of_engines(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
    reports: &[TestReportState],
) -> Result<(), Fault> {
    let failed =
        reports.iter().filter_map(|report| Some((report, report.engine_failure.as_ref()?)));
    let failure = |(report, reason): (_, &String)| {
        NewFailure::new(report, OF_ENGINE, Cause::of(reason).as_ref())
    };
    insert_all(tx, customer, state, &failed.map(failure).collect::<Result<Vec<_>, _>>()?).await
}

async fn insert_all(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
    failures: &[NewFailure<'_>],
) -> Result<(), Fault> {
    if failures.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "insert into failure (customer_id, project_id, execution_id, version, test_report_id,
             instance_nr, test_case_id, fingerprint, headline)
         select $1, $2::uuid, $3::uuid, $4, failure.*
         from unnest($5::text[]::uuid[], $6::int[], $7::text[]::uuid[], $8::bytea[], $9::text[])
             as failure",
    )
    .bind(customer)
    .bind(&state.execution.project_id)
    .bind(&state.execution.id)
    .bind(VERSION)
    .bind(column(failures, |failure| failure.report.published.id.as_str()))
    .bind(column(failures, |failure| failure.instance_nr))
    .bind(column(failures, |failure| failure.report.published.test_case_id.as_str()))
    .bind(column(failures, |failure| failure.fingerprint.as_slice()))
    .bind(column(failures, |failure| failure.headline.as_str()))
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Removes the failures of instances that have another last attempt.
pub async fn delete(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    reports: &[TestReportState],
    instances: &[NewInstance],
) -> Result<(), Fault> {
    if instances.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "delete from failure
         using unnest($2::text[]::uuid[], $3::int[]) as retried (report, number)
         where customer_id = $1 and test_report_id = retried.report
           and instance_nr = retried.number",
    )
    .bind(customer)
    .bind(column(instances, |instance| reports[instance.report].published.id.as_str()))
    .bind(column(instances, |instance| instance.instance_nr))
    .execute(&mut **tx)
    .await?;
    Ok(())
}
