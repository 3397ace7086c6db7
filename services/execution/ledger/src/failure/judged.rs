//! Versions of the judgements of causes: they change with each review of one of their test reports.

use std::collections::HashMap;

use assay_fingerprint::Fingerprint;
use assay_proto::{CustomerId, ExecutionId, Fault, TestReportId};
use sqlx::{AssertSqlSafe, PgTransaction};

/// Selects the version of the judgements of failures `f` with the same cause, of reports `r`. Reports that nobody has
/// judged do not count, so that the version stays the same while results arrive.
pub const VERSION: &str = "coalesce(sum(hashtextextended(r.id::text, r.revision))
    filter (where r.reviewed_by_id is not null), 0)::text";

/// Returns those of some causes of a locked execution whose judgements have another version than this one.
pub async fn changed(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    seen: &[(Fingerprint, String)],
) -> Result<Vec<Fingerprint>, Fault> {
    if seen.is_empty() {
        return Ok(Vec::new());
    }
    let causes: Vec<_> = seen.iter().map(|(cause, _)| &cause.as_bytes()[..]).collect();
    let present = sqlx::query_as::<_, (Vec<u8>, String)>(AssertSqlSafe(format!(
        "select f.fingerprint, {VERSION}
         from kept_failure f
         join test_report r on r.customer_id = f.customer_id and r.id = f.test_report_id
         where f.customer_id = $1 and f.execution_id = $2 and f.fingerprint = any($3)
         group by f.fingerprint"
    )));
    let present = present.bind(customer).bind(execution).bind(causes).fetch_all(&mut **tx).await?;
    let present: HashMap<_, _> = present.into_iter().collect();
    let is_changed = |(cause, version): &&(Fingerprint, String)| {
        present.get(&cause.as_bytes()[..]).is_some_and(|present| present != version)
    };
    Ok(seen.iter().filter(is_changed).map(|(cause, _)| *cause).collect())
}

/// Returns the judged reports with some causes of an execution, those first that were judged last.
pub async fn reports(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    causes: &[Fingerprint],
) -> Result<Vec<TestReportId>, Fault> {
    let causes: Vec<_> = causes.iter().map(|cause| &cause.as_bytes()[..]).collect();
    let reports = sqlx::query_scalar(
        "select r.id from test_report r
         where r.customer_id = $1 and r.execution_id = $2 and r.reviewed_by_id is not null
           and r.id = any(array(
               select test_report_id from kept_failure
               where customer_id = $1 and execution_id = $2 and fingerprint = any($3)
           ))
         order by r.review_time desc, r.id",
    );
    Ok(reports.bind(customer).bind(execution).bind(causes).fetch_all(&mut **tx).await?)
}
