//! Projections of the latest executions onto test sets, subjects and projects.
//!
//! Later executions have larger ids, and later changes of an execution have larger revisions. An event
//! that is older by this order changes nothing. An event that is applied again repairs its projection.

use assay_proto::{
    CustomerId, ExecutionId, ExecutionStatistic, ExecutionStatus, Fault, ProjectId, SubjectId,
    TestSetId, events::ExecutionChanged, name_of,
};
use sqlx::{PgTransaction, types::Json};

use super::lock_project;

/// Maximum duration that a test set shows, in seconds: 9999 hours.
const LONGEST_RUN: f64 = 9999.0 * 3600.0;

/// Applies a change of an execution.
pub async fn execution_changed(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: &ExecutionChanged,
) -> Result<(), Fault> {
    let id = ProjectId::from_field("ProjectId", &execution.project_id)?;
    if !lock_project(tx, customer, id).await? {
        return Ok(());
    }
    let statistic = execution.statistic.clone().unwrap_or_default();
    update_test_set(tx, customer, execution, &statistic).await?;
    match execution.status() {
        ExecutionStatus::Completed => {
            update_pass_rate(tx, customer, execution, &statistic).await?;
            update_project(tx, customer, execution).await
        }
        ExecutionStatus::Canceled => update_project(tx, customer, execution).await,
        _ => Ok(()),
    }
}

async fn update_test_set(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: &ExecutionChanged,
    statistic: &ExecutionStatistic,
) -> Result<(), Fault> {
    let subject = statistic.software_version_id.as_deref();
    sqlx::query(
        "update test_set
         set last_execution_id = $3, last_execution_revision = $4, last_executed = $5,
             last_subject_id = $6, last_sw_identifier = $7, last_sw_name = $8,
             last_execution_statistic = $9,
             last_run_duration = to_char(make_interval(secs => $10), 'HH24:MI:SS')
         where customer_id = $1 and id = $2
           and (last_execution_id, last_execution_revision) <= ($3, $4)",
    )
    .bind(customer)
    .bind(TestSetId::from_field("TestSetId", &execution.test_set_id)?)
    .bind(id_of(execution)?)
    .bind(execution.revision)
    .bind(statistic.execution_request_time)
    .bind(SubjectId::from_field_if_any("SoftwareVersionId", subject)?)
    .bind(&statistic.software_version)
    .bind(&statistic.software_name)
    .bind(Json(statistic))
    .bind(execution.run_duration_in_sec.clamp(0.0, LONGEST_RUN))
    .execute(&mut **tx)
    .await?;
    Ok(())
}

async fn update_pass_rate(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: &ExecutionChanged,
    statistic: &ExecutionStatistic,
) -> Result<(), Fault> {
    let Some(subject) = &statistic.software_version_id else { return Ok(()) };
    let total = f64::from(statistic.test_cases_total.max(1));
    sqlx::query(
        "update subject
         set pass_rate = $5, pass_rate_execution_id = $3, pass_rate_revision = $4
         where customer_id = $1 and id = $2
           and (pass_rate_execution_id, pass_rate_revision) <= ($3, $4)",
    )
    .bind(customer)
    .bind(SubjectId::from_field("SoftwareVersionId", subject)?)
    .bind(id_of(execution)?)
    .bind(execution.revision)
    .bind(100.0 * f64::from(statistic.test_cases_passed) / total)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

async fn update_project(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: &ExecutionChanged,
) -> Result<(), Fault> {
    sqlx::query(
        "update project
         set overall_result = $5, result_execution_id = $3, result_revision = $4
         where customer_id = $1 and id = $2
           and (result_execution_id, result_revision) <= ($3, $4)",
    )
    .bind(customer)
    .bind(ProjectId::from_field("ProjectId", &execution.project_id)?)
    .bind(id_of(execution)?)
    .bind(execution.revision)
    .bind(name_of(execution.result()))
    .execute(&mut **tx)
    .await?;
    Ok(())
}

fn id_of(execution: &ExecutionChanged) -> Result<ExecutionId, Fault> {
    ExecutionId::from_field("ExecutionId", &execution.execution_id)
}
