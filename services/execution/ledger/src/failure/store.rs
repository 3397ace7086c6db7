//! Failures in PostgreSQL. Every statement is bound to one customer.

use assay_fingerprint::{Failure as Cause, VERSION};
use assay_proto::{CustomerId, Fault, TestCaseId};
use sqlx::PgTransaction;

use crate::{
    cause_rule::{self, CauseRules},
    column::column,
    instance::steps::{self, StoredStep},
    progress::{execution::ExecutionState, instance::NewInstance, report::TestReportState},
};

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
        rules: &CauseRules,
        cause: Option<&Cause>,
    ) -> Result<Self, Fault> {
        let test_case = TestCaseId::from_record(&report.published.test_case_id)?;
        let (fingerprint, headline) = rules.identity(cause, test_case.0);
        Ok(Self { report, instance_nr, fingerprint, headline })
    }

    /// The causes of instances are known without the patterns of the project, which few projects have.
    fn of_instance(
        report: &'f TestReportState,
        instance: &NewInstance,
        rules: &CauseRules,
    ) -> Result<Self, Fault> {
        let (last, number) = (&instance.last, instance.instance_nr);
        if !rules.has_patterns() {
            return Self::new(report, number, rules, last.cause.as_deref());
        }
        let steps: Vec<StoredStep> = steps::read(&last.detail.steps)?;
        let cause = rules.of_steps(last.outcome.result, &steps);
        Self::new(report, number, rules, cause.as_ref())
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
    let failed: Vec<&NewInstance> = failed.collect();
    if failed.is_empty() {
        return Ok(());
    }
    let rules = rules(tx, customer, state).await?;
    let failure = |instance: &&NewInstance| {
        NewFailure::of_instance(&reports[instance.report], instance, &rules)
    };
    let failures = failed.iter().map(failure).collect::<Result<Vec<_>, _>>()?;
    insert_all(tx, customer, state, &failures).await
}

/// Stores the failures of engines that have ended reports.
pub async fn insert_of_engines(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
    reports: &[TestReportState],
) -> Result<(), Fault> {
    let failed: Vec<_> = reports
        .iter()
        .filter_map(|report| Some((report, report.engine_failure.as_ref()?)))
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    let rules = rules(tx, customer, state).await?;
    let failure = |(report, reason): (_, &String)| {
        NewFailure::new(report, OF_ENGINE, &rules, rules.of_reason(reason).as_ref())
    };
    let failures = failed.into_iter().map(failure).collect::<Result<Vec<_>, _>>()?;
    insert_all(tx, customer, state, &failures).await
}

/// Reads the rules for causes of the project of an execution.
async fn rules(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
) -> Result<CauseRules, Fault> {
    cause_rule::store::of_project(&mut **tx, customer, &state.execution.project_id).await
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
