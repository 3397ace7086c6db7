//! Failures as they follow from the stored steps and reasons, to verify and to rebuild them.

use assay_fingerprint::VERSION;
use assay_proto::{CustomerId, ExecutionId, Fault, TestReportId};
use futures::{TryStreamExt, stream::BoxStream};
use sqlx::{FromRow, PgConnection};
use uuid::Uuid;

use super::{source::Source, store::OF_ENGINE};
use crate::{
    cause_rule::{self, CauseRules},
    column::column,
};

/// Number of instances whose steps are read at a time.
const SLICE: i64 = 200;

/// An instance whose stored failure differs from the one that follows from its steps.
pub struct Difference {
    pub report: TestReportId,
    pub instance_nr: i32,
    /// The fingerprint and the headline.
    pub stored: Option<(Vec<u8>, String)>,
    pub derived: Option<(Vec<u8>, String)>,
}

/// The source of a failure, and the stored failure.
#[derive(FromRow)]
struct Row {
    #[sqlx(flatten)]
    source: Source,
    report: TestReportId,
    instance_nr: i32,
    fingerprint: Option<Vec<u8>>,
    headline: Option<String>,
    version: Option<i16>,
}

impl Row {
    fn difference(self, rules: &CauseRules) -> Result<Option<Difference>, Fault> {
        let derived = self.source.identity(rules)?;
        let stored = self.fingerprint.zip(self.headline);
        if stored.as_ref() == Some(&derived) && self.version == Some(VERSION) {
            return Ok(None);
        }
        let (report, instance_nr) = (self.report, self.instance_nr);
        Ok(Some(Difference { report, instance_nr, stored, derived: Some(derived) }))
    }
}

/// Returns the differences of an execution whose results have not expired.
pub async fn differences(
    db: &mut PgConnection,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<Vec<Difference>, Fault> {
    let rules = cause_rule::store::of_execution(&mut *db, customer, execution).await?;
    let (mut differences, mut after) = (Vec::new(), (TestReportId(Uuid::nil()), OF_ENGINE));
    loop {
        let mut rows = failed(db, customer, execution, after);
        let before = after;
        // One at a time: the steps of a row may take a mebibyte.
        while let Some(row) = rows.try_next().await? {
            after = (row.report, row.instance_nr);
            differences.extend(row.difference(&rules)?);
        }
        if after == before {
            break;
        }
    }
    differences.extend(unfounded(db, customer, execution).await?);
    Ok(differences)
}

/// Reads failures after one of them.
fn failed(
    db: &mut PgConnection,
    customer: CustomerId,
    execution: ExecutionId,
    (report, instance_nr): (TestReportId, i32),
) -> BoxStream<'_, sqlx::Result<Row>> {
    let rows = sqlx::query_as(
        "select failed.*, f.fingerprint, f.headline, f.version
         from (
             select r.id as report, i.instance_nr, r.test_case_id, i.result,
                    coalesce(a.steps, '') as steps, null as reason
             from test_report r
             join instance i on i.customer_id = r.customer_id and i.test_report_id = r.id
             left join attempt a on a.customer_id = i.customer_id
                 and a.test_report_id = i.test_report_id and a.instance_nr = i.instance_nr
                 and a.attempt = i.attempt
             where r.customer_id = $1 and r.execution_id = $2 and i.result in ('Failed', 'Error')
               and (r.id, i.instance_nr) > ($3, $4)
             union all
             select id, $6, test_case_id, result, '', engine_failure from test_report
             where customer_id = $1 and execution_id = $2 and engine_failure is not null
               and (id, $6) > ($3, $4)
             order by report, instance_nr
             limit $5
         ) as failed
         left join failure f on f.customer_id = $1 and f.test_report_id = failed.report
             and f.instance_nr = failed.instance_nr
         order by report, instance_nr",
    );
    let rows = rows.bind(customer).bind(execution).bind(report).bind(instance_nr).bind(SLICE);
    rows.bind(OF_ENGINE).fetch(db)
}

/// Returns the failures of instances and engines that have not failed.
async fn unfounded(
    db: &mut PgConnection,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<Vec<Difference>, Fault> {
    let failures = sqlx::query_as(
        "select f.test_report_id, f.instance_nr, f.fingerprint, f.headline from failure f
         where f.customer_id = $1 and f.execution_id = $2 and not exists (
             select from instance i
             where i.customer_id = f.customer_id and i.test_report_id = f.test_report_id
               and i.instance_nr = f.instance_nr and i.result in ('Failed', 'Error')
         ) and not exists (
             select from test_report r
             where r.customer_id = f.customer_id and r.id = f.test_report_id
               and f.instance_nr = $3 and r.engine_failure is not null
         )",
    );
    let failures: Vec<(TestReportId, i32, Vec<u8>, String)> =
        failures.bind(customer).bind(execution).bind(OF_ENGINE).fetch_all(db).await?;
    let difference = |(report, instance_nr, fingerprint, headline)| Difference {
        report,
        instance_nr,
        stored: Some((fingerprint, headline)),
        derived: None,
    };
    Ok(failures.into_iter().map(difference).collect())
}

/// Stores the failures that follow from the steps of a locked execution. Returns what it has changed.
pub async fn repair(
    db: &mut PgConnection,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<Vec<Difference>, Fault> {
    let differences = differences(db, customer, execution).await?;
    if differences.is_empty() {
        return Ok(differences);
    }
    let delete = sqlx::query(
        "delete from failure
         using unnest($2::uuid[], $3::int[], $4::bytea[]) as changed (report, number, fingerprint)
         where customer_id = $1 and test_report_id = report and instance_nr = number
           and changed.fingerprint is null",
    );
    let delete = delete
        .bind(customer)
        .bind(column(&differences, |one| one.report))
        .bind(column(&differences, |one| one.instance_nr))
        .bind(column(&differences, |one| one.derived.clone().unzip().0));
    delete.execute(&mut *db).await?;
    let derived = |one: &Difference| one.derived.clone().unzip();
    let insert = sqlx::query(
        "insert into failure (customer_id, version, test_report_id, instance_nr, project_id,
             execution_id, test_case_id, fingerprint, headline)
         select $1, $2, r.id, derived.number, e.project_id, e.id, r.test_case_id,
                derived.fingerprint, derived.headline
         from unnest($3::uuid[], $4::int[], $5::bytea[], $6::text[])
             as derived (report, number, fingerprint, headline)
         join test_report r on r.customer_id = $1 and r.id = derived.report
         join execution e on e.customer_id = $1 and e.id = r.execution_id
         where derived.fingerprint is not null
         on conflict on constraint failure_pkey do update
         set version = excluded.version, fingerprint = excluded.fingerprint,
             headline = excluded.headline",
    );
    let insert = insert
        .bind(customer)
        .bind(VERSION)
        .bind(column(&differences, |one| one.report))
        .bind(column(&differences, |one| one.instance_nr))
        .bind(column(&differences, |one| derived(one).0))
        .bind(column(&differences, |one| derived(one).1));
    insert.execute(&mut *db).await?;
    Ok(differences)
}
