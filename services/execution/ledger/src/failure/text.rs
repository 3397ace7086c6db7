//! The texts of the causes of a project, to create rules and to try them. Texts are read one at a time: the steps
//! of a failure may take a mebibyte.

use assay_fingerprint::Fingerprint;
use assay_proto::{CustomerId, Fault, ProjectId};
use futures::{TryStreamExt, stream::BoxStream};
use sqlx::{AssertSqlSafe, FromRow, PgConnection};

use super::{source::Source, store::OF_ENGINE};
use crate::cause_rule::{Cause, CauseRules};

/// Number of the latest executions, and of failures and causes in them, that are examined.
const EXECUTIONS: i64 = 200;
const FAILURES: i64 = 20_000;
const CAUSES: i64 = 1000;

/// Number of the latest failures with a cause among which one that does not count as it is sought.
const SOUGHT: i64 = 20;

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

/// The columns of a [`Source`], and what the failure `f` is joined with to read them. `$2` is [`OF_ENGINE`].
const SOURCE: (&str, &str) = (
    "f.test_case_id, coalesce(i.result, 'Failed') as result, coalesce(a.steps, '') as steps,
     case when f.instance_nr = $2 then r.engine_failure end as reason",
    "join test_report r on r.customer_id = $1 and r.id = f.test_report_id
     left join instance i on i.customer_id = $1 and i.test_report_id = f.test_report_id
         and i.instance_nr = f.instance_nr
     left join attempt a on a.customer_id = $1 and a.test_report_id = f.test_report_id
         and a.instance_nr = f.instance_nr and a.attempt = i.attempt",
);

/// Reads the causes in the latest executions of a project, the most frequent ones first.
pub fn frequent(
    db: &mut PgConnection,
    customer: CustomerId,
    project: ProjectId,
) -> BoxStream<'_, sqlx::Result<Text>> {
    let (columns, joined) = SOURCE;
    let texts = sqlx::query_as(AssertSqlSafe(format!(
        "with latest as materialized (
             select id from live_execution
             where customer_id = $1 and project_id = $3 and expired_at is null
             order by id desc
             limit $4
         ),
         examined as materialized (
             select f.* from latest
             join failure f on f.customer_id = $1 and f.execution_id = latest.id
             order by f.execution_id desc
             limit $5
         ),
         cause as materialized (
             select distinct on (fingerprint) fingerprint, test_report_id, instance_nr, test_case_id,
                    headline, (count(*) over (partition by fingerprint))::int as failures
             from examined
             order by fingerprint, execution_id desc, test_report_id, instance_nr
         ),
         most as materialized (
             select * from cause order by failures desc, fingerprint limit $6
         )
         select f.fingerprint, f.headline, f.failures, {columns}
         from most f {joined}
         order by f.failures desc, f.fingerprint"
    )));
    texts
        .bind(customer)
        .bind(OF_ENGINE)
        .bind(project)
        .bind(EXECUTIONS)
        .bind(FAILURES)
        .bind(CAUSES)
        .fetch(db)
}

/// Returns a cause of a project with the lines that state it. Failures that count as this cause by `rules` have
/// other lines, and are passed over.
pub async fn cause(
    db: &mut PgConnection,
    customer: CustomerId,
    project: ProjectId,
    fingerprint: Fingerprint,
    rules: &CauseRules,
) -> Result<Option<Cause>, Fault> {
    let (columns, joined) = SOURCE;
    let sources = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns}
         from (
             select * from kept_failure
             where customer_id = $1 and project_id = $3 and fingerprint = $4
             order by execution_id desc
             limit $5
         ) as f {joined}"
    )));
    let sources = sources.bind(customer).bind(OF_ENGINE).bind(project);
    let mut sources: BoxStream<'_, sqlx::Result<Source>> =
        sources.bind(fingerprint.as_bytes().to_vec()).bind(SOUGHT).fetch(db);
    while let Some(source) = sources.try_next().await? {
        let cause = source.cause(rules)?;
        if cause.fingerprint == fingerprint {
            return Ok(Some(cause));
        }
    }
    Ok(None)
}
