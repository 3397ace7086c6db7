//! Compares the projections of executions with the events of the execution service: a projection that
//! would change if the events were applied again is wrong.

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

/// The projected columns of records, by table and id.
type Projections = BTreeMap<(String, Uuid), Value>;

/// Reports each record whose projections of an execution and its reports are wrong, and returns their
/// number. Changes nothing.
pub async fn verify(
    db: &PgPool,
    customer: CustomerId,
    execution: &ExecutionChanged,
    reports: &[ReportsChanged],
    mut report: impl FnMut(&dyn Display),
) -> Result<u64, Fault> {
    let mut tx = begin(db).await?;
    let before = projections(&mut *tx, customer, execution, reports).await?;
    execution_changed(&mut tx, customer, execution).await?;
    for changed in reports {
        reports_changed(&mut tx, customer, changed).await?;
    }
    let after = projections(&mut *tx, customer, execution, reports).await?;
    tx.rollback().await?;
    let mut differences = 0;
    for ((noun, id), applied) in &after {
        let stored = before.get(&(noun.clone(), *id)).unwrap_or(&Value::Null);
        if stored != applied {
            report(&format!("{noun} {id}: shows {stored}, but should show {applied}"));
            differences += 1;
        }
    }
    Ok(differences)
}

/// Returns the projections that an execution and its reports affect.
async fn projections(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    execution: &ExecutionChanged,
    reports: &[ReportsChanged],
) -> Result<Projections, Fault> {
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
    Ok(rows.into_iter().map(|(noun, id, columns)| ((noun, id), columns)).collect())
}
