//! Compares what the catalog shows of executions with what the execution service tells of them:
//! whatever would change if that was told again is not as it should be.

use std::{collections::BTreeMap, fmt::Display};

use assay_proto::{
    CustomerId, Fault,
    events::{ExecutionChanged, ReportsChanged},
};
use assay_runtime::begin;
use serde_json::Value;
use sqlx::{PgExecutor, PgPool};
use uuid::Uuid;

use crate::reactions::{execution_changed, reports_changed};

/// What is shown of records, by what and which they are.
type Shown = BTreeMap<(String, Uuid), Value>;

/// Tells of each record that does not show what it should of an execution and its reports; says how
/// many there are. Nothing is changed.
pub async fn verify(
    db: &PgPool,
    customer: CustomerId,
    execution: &ExecutionChanged,
    reports: &[ReportsChanged],
    mut tell: impl FnMut(&dyn Display),
) -> Result<u64, Fault> {
    let mut tx = begin(db).await?;
    let before = shown(&mut *tx, customer, execution, reports).await?;
    execution_changed(&mut tx, customer, execution).await?;
    for changed in reports {
        reports_changed(&mut tx, customer, changed).await?;
    }
    let after = shown(&mut *tx, customer, execution, reports).await?;
    tx.rollback().await?;
    let mut differences = 0;
    for ((noun, id), made) in &after {
        let stored = before.get(&(noun.clone(), *id)).unwrap_or(&Value::Null);
        if stored != made {
            tell(&format!("{noun} {id}: shows {stored}, but should show {made}"));
            differences += 1;
        }
    }
    Ok(differences)
}

/// What is shown where an execution and its reports matter.
async fn shown(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    execution: &ExecutionChanged,
    reports: &[ReportsChanged],
) -> Result<Shown, Fault> {
    let reports = || reports.iter().flat_map(|changed| &changed.reports);
    let statistic = execution.statistic.as_ref();
    let subject = statistic.and_then(|statistic| statistic.software_version_id.as_deref());
    let rows: Vec<(String, Uuid, Value)> = sqlx::query_as(
        "select 'test set', id, jsonb_build_array(last_execution_id, last_executed,
                last_subject_id, last_sw_identifier, last_sw_name, last_execution_statistic,
                last_run_duration)
         from test_set where customer_id = $1 and id = $2::uuid
         union all
         select 'subject', id, jsonb_build_array(pass_rate, pass_rate_execution_id)
         from subject where customer_id = $1 and id = $3::uuid
         union all
         select 'project', id, jsonb_build_array(overall_result, overall_status)
         from project where customer_id = $1 and id = $4::uuid
         union all
         select 'test case', id, jsonb_build_array(last_report_status, last_result, last_sw_name,
                last_sw_identifier, execution_statistics)
         from test_case where customer_id = $1 and id = any($5::text[]::uuid[])
         union all
         select 'test report', id, jsonb_build_array(test_case_id, test_plan_id, execution_number,
                result, status, start_date_time, finish_date_time, average_duration_in_sec)
         from test_report where customer_id = $1 and id = any($6::text[]::uuid[])",
    )
    .bind(customer)
    .bind(&execution.test_set_id)
    .bind(subject)
    .bind(&execution.project_id)
    .bind(reports().map(|report| report.test_case_id.as_str()).collect::<Vec<_>>())
    .bind(reports().map(|report| report.id.as_str()).collect::<Vec<_>>())
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().map(|(noun, id, shown)| ((noun, id), shown)).collect())
}
