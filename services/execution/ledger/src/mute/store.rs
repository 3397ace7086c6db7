//! Muted failures in PostgreSQL. Every statement is bound to one customer.

use std::collections::{HashMap, HashSet};

use assay_proto::{CustomerId, ExecutionId, Fault};
use sqlx::PgTransaction;

/// Marks those failures of failing reports that are known, or whose test case is muted. Returns the reports whose
/// failures are all marked, with the ticket of one of the known failures or else of the test case, by their ids.
pub(super) async fn mute(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: &str,
    reports: &[String],
) -> Result<HashMap<String, String>, Fault> {
    if reports.is_empty() || !has_mutes(tx, customer, project, reports).await? {
        return Ok(HashMap::new());
    }
    let muted: Vec<(String, String)> = sqlx::query_as(
        "with found as materialized (
             select f.test_report_id, f.instance_nr, f.is_known, k.ticket, s.ticket as of_case,
                    k.id is not null or s.test_case_id is not null as is_muted
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
         ), marked as (
             update failure f set is_known = true
             from found
             where f.customer_id = $1 and f.test_report_id = found.test_report_id
               and f.instance_nr = found.instance_nr and found.is_muted and not found.is_known
         )
         select test_report_id::text, coalesce(nullif(max(ticket), ''), max(of_case), '')
         from found
         group by test_report_id
         having bool_and(is_known or is_muted)",
    )
    .bind(customer)
    .bind(reports)
    .fetch_all(&mut **tx)
    .await?;
    Ok(muted.into_iter().collect())
}

/// Whether anything in a project may be muted, or a failure of these reports is.
async fn has_mutes(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: &str,
    reports: &[String],
) -> Result<bool, Fault> {
    let has_mutes = sqlx::query_scalar(
        "select exists (
             select from known_failure where customer_id = $1 and project_id = $2::uuid
         ) or exists (
             select from test_case_state where customer_id = $1 and project_id = $2::uuid
         ) or exists (
             select from failure
             where customer_id = $1 and test_report_id = any($3::text[]::uuid[]) and is_known
         )",
    );
    Ok(has_mutes.bind(customer).bind(project).bind(reports).fetch_one(&mut **tx).await?)
}

/// Marks the failures of reports as not muted.
pub(super) async fn unmark(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    reports: &[&String],
) -> Result<(), Fault> {
    if reports.is_empty() {
        return Ok(());
    }
    let unmark = sqlx::query(
        "update failure set is_known = false
         where customer_id = $1 and test_report_id = any($2::text[]::uuid[]) and is_known",
    );
    unmark.bind(customer).bind(reports).execute(&mut **tx).await?;
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
