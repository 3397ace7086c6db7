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

/// Stores the failures among new instances of an execution.
pub(crate) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
    reports: &[TestReportState],
    instances: impl Iterator<Item = &NewInstance>,
) -> Result<(), Fault> {
    let failed: Vec<_> =
        instances.filter(|instance| instance.last.outcome.result.is_failure()).collect();
    if failed.is_empty() {
        return Ok(());
    }
    let report = |instance: &&NewInstance| &reports[instance.report].published;
    let case = |instance: &&NewInstance| report(instance).test_case_id.as_str();
    let identity = |instance: &&NewInstance| {
        let case = TestCaseId::from_record(case(instance))?;
        Ok::<_, Fault>(identity(instance.last.cause.as_ref(), case.0))
    };
    let identities = failed.iter().map(identity).collect::<Result<Vec<_>, _>>()?;
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
    .bind(column(&failed, |instance| report(instance).id.as_str()))
    .bind(column(&failed, |instance| instance.instance_nr))
    .bind(column(&failed, case))
    .bind(column(&identities, |(fingerprint, _)| fingerprint.as_slice()))
    .bind(column(&identities, |(_, headline)| headline.as_str()))
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Removes the failures of instances that have another last attempt.
pub(crate) async fn delete(
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
