//! The texts of the causes of a project, to try rules on them.

use assay_proto::{CustomerId, Fault, ProjectId};
use sqlx::{FromRow, PgExecutor};

use super::{source::Source, store::OF_ENGINE};
use crate::cause_rule::CauseRules;

/// Number of the latest executions, and of failures and causes in them, that are examined.
const EXECUTIONS: i64 = 200;
const FAILURES: i64 = 20_000;
const CAUSES: i64 = 1000;

/// A cause with the text of one of its latest failures.
#[derive(FromRow)]
pub struct Text {
    #[sqlx(flatten)]
    source: Source,
    pub fingerprint: Vec<u8>,
    pub headline: String,
    /// Number of failures with this cause among those that were examined.
    pub failures: i32,
}

impl Text {
    /// Returns the fingerprint that follows by rules.
    pub fn fingerprint_by(&self, rules: &CauseRules) -> Result<Vec<u8>, Fault> {
        Ok(self.source.identity(rules)?.0)
    }
}

/// Returns the most frequent causes in the latest executions of a project.
pub async fn texts(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
) -> Result<Vec<Text>, Fault> {
    let texts = sqlx::query_as(
        "with latest as materialized (
             select id from live_execution
             where customer_id = $1 and project_id = $2 and expired_at is null
             order by id desc
             limit $3
         ),
         examined as materialized (
             select f.* from latest
             join failure f on f.customer_id = $1 and f.execution_id = latest.id
             order by f.execution_id desc
             limit $4
         ),
         cause as materialized (
             select fingerprint, count(*)::int as failures,
                    (array_agg(test_report_id order by execution_id desc, test_report_id, instance_nr))[1] as report,
                    (array_agg(instance_nr order by execution_id desc, test_report_id, instance_nr))[1] as number
             from examined
             group by fingerprint
             order by failures desc, fingerprint
             limit $5
         )
         select cause.fingerprint, f.headline, cause.failures, f.test_case_id,
                coalesce(i.result, 'Failed') as result, coalesce(a.steps, '') as steps,
                case when cause.number = $6 then r.engine_failure end as reason
         from cause
         join failure f on f.customer_id = $1 and f.test_report_id = cause.report
             and f.instance_nr = cause.number
         join test_report r on r.customer_id = $1 and r.id = cause.report
         left join instance i on i.customer_id = $1 and i.test_report_id = cause.report
             and i.instance_nr = cause.number
         left join attempt a on a.customer_id = $1 and a.test_report_id = cause.report
             and a.instance_nr = cause.number and a.attempt = i.attempt
         order by cause.failures desc, cause.fingerprint",
    );
    Ok(texts
        .bind(customer)
        .bind(project)
        .bind(EXECUTIONS)
        .bind(FAILURES)
        .bind(CAUSES)
        .bind(OF_ENGINE)
        .fetch_all(db)
        .await?)
}
