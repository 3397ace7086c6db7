//! Muted failures in PostgreSQL. Every statement is bound to one customer.

use std::collections::{HashMap, HashSet};

use assay_proto::{CustomerId, ExecutionId, Fault};
use sqlx::PgTransaction;

/// Returns those of the failing reports whose failures are all known, or whose test case is muted, with the
/// ticket of one of the known failures or else of the test case, by the ids of the reports.
pub(super) async fn muted(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: &str,
    reports: &[String],
) -> Result<HashMap<String, String>, Fault> {
    if reports.is_empty() || !has_mutes(tx, customer, project).await? {
        return Ok(HashMap::new());
    }
    let muted: Vec<(String, String)> = sqlx::query_as(
        "select f.test_report_id::text, coalesce(nullif(max(k.ticket), ''), max(s.ticket), '')
         from failure f
         left join lateral (
             select id, ticket from known_failure k
             where k.customer_id = $1 and k.project_id = f.project_id
               and k.fingerprint = f.fingerprint
               and (k.test_case_id is null or k.test_case_id = f.test_case_id)
               and k.muted_until > now()
             order by test_case_id
             limit 1
         ) as k on true
         left join test_case_state s on s.customer_id = $1 and s.project_id = f.project_id
             and s.test_case_id = f.test_case_id and s.state = 'Muted' and s.until > now()
         where f.customer_id = $1 and f.test_report_id = any($2::text[]::uuid[])
         group by f.test_report_id
         having bool_and(k.id is not null) or bool_and(s.test_case_id is not null)",
    )
    .bind(customer)
    .bind(reports)
    .fetch_all(&mut **tx)
    .await?;
    Ok(muted.into_iter().collect())
}

/// Whether anything in a project may be muted.
async fn has_mutes(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: &str,
) -> Result<bool, Fault> {
    let has_mutes = sqlx::query_scalar(
        "select exists (
             select from known_failure where customer_id = $1 and project_id = $2::uuid
         ) or exists (
             select from test_case_state where customer_id = $1 and project_id = $2::uuid
         )",
    );
    Ok(has_mutes.bind(customer).bind(project).fetch_one(&mut **tx).await?)
}

/// Marks the failures of reports as muted, or not.
pub(super) async fn mark(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    reports: &[&String],
    is_muted: bool,
) -> Result<(), Fault> {
    if reports.is_empty() {
        return Ok(());
    }
    let mark = sqlx::query(
        "update failure set is_known = $3
         where customer_id = $1 and test_report_id = any($2::text[]::uuid[]) and is_known <> $3",
    );
    mark.bind(customer).bind(reports).bind(is_muted).execute(&mut **tx).await?;
    Ok(())
}

/// Returns the failing reports of an execution whose failures are all marked as muted.
pub async fn marked(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<HashSet<String>, Fault> {
    let marked: Vec<String> = sqlx::query_scalar(
        "select test_report_id::text from failure
         where customer_id = $1 and execution_id = $2
         group by test_report_id
         having bool_and(is_known)",
    )
    .bind(customer)
    .bind(execution)
    .fetch_all(&mut **tx)
    .await?;
    Ok(marked.into_iter().collect())
}
