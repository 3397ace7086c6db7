//! Instances in PostgreSQL. Every statement is bound to one customer.

use std::ops::RangeInclusive;

use assay_proto::{
    CustomerId, EnumName, Fault, InstanceId, TestReportId, TestResult,
    execution::{Instance, InstanceEntry, StepHistory},
    name_of,
};
use assay_rpc::parts::bounded;
use serde::Deserialize;
use sqlx::{
    AssertSqlSafe, FromRow, PgExecutor, PgTransaction, Postgres, postgres::PgArguments,
    query::QueryAs,
};

use super::steps;
use crate::{
    column::column,
    progress::{instance::NewInstance, report::TestReportState},
};

/// Maximum number of earlier reports in the history of a step.
const HISTORY: i64 = 10;

/// Reads instances as list entries. `rest` selects and orders them.
fn select(rest: &str) -> QueryAs<'static, Postgres, InstanceEntry, PgArguments> {
    let columns = InstanceEntry::COLUMNS;
    sqlx::query_as(AssertSqlSafe(format!("select {columns} from instance {rest}")))
}

/// The condition that the results of the report `$2` of the customer `$1` have not expired. Until they are removed,
/// nothing shows them.
const IS_KEPT: &str = "not exists (
    select from test_report r
    join execution e on e.customer_id = r.customer_id and e.id = r.execution_id
    where r.customer_id = $1 and r.id = $2 and e.expired_at is not null
)";

/// Lists instances of a report, by number. `numbers` excludes its start and includes its end.
pub async fn list(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    report: TestReportId,
    numbers: RangeInclusive<i32>,
    limit: i64,
) -> Result<Vec<InstanceEntry>, Fault> {
    let entries = select(&format!(
        "where customer_id = $1 and test_report_id = $2 and instance_nr > $3 and instance_nr <= $4
           and {IS_KEPT}
         order by instance_nr
         limit $5"
    ))
    .bind(customer)
    .bind(report)
    .bind(numbers.start())
    .bind(numbers.end())
    .bind(limit)
    .fetch_all(db)
    .await?;
    Ok(entries)
}

/// Returns the number of an instance of a report.
pub async fn number(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    report: TestReportId,
    id: InstanceId,
) -> Result<Option<i32>, Fault> {
    let number = sqlx::query_scalar(
        "select instance_nr from instance
         where customer_id = $1 and test_report_id = $2 and id = $3",
    );
    Ok(number.bind(customer).bind(report).bind(id).fetch_optional(db).await?)
}

/// Lists the instances of a report that have these numbers, by number.
pub async fn of_numbers(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    report: TestReportId,
    numbers: &[i32],
) -> Result<Vec<InstanceEntry>, Fault> {
    let entries = select(
        "where customer_id = $1 and test_report_id = $2 and instance_nr = any($3)
         order by instance_nr",
    );
    Ok(entries.bind(customer).bind(report).bind(numbers).fetch_all(db).await?)
}

/// Lists the finished instances of a report whose durations are outside a range, by number.
pub async fn outside(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    report: TestReportId,
    range: &RangeInclusive<f64>,
) -> Result<Vec<InstanceEntry>, Fault> {
    let entries = select(
        "where customer_id = $1 and test_report_id = $2 and result <> 'NotExecuted'
           and (duration_in_sec < $3 or duration_in_sec > $4)
         order by instance_nr",
    )
    .bind(customer)
    .bind(report)
    .bind(range.start())
    .bind(range.end())
    .fetch_all(db)
    .await?;
    Ok(entries)
}

/// Returns the shortest and the longest duration of finished instances of a report that are within a range.
pub async fn extremes(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    report: TestReportId,
    range: &RangeInclusive<f64>,
) -> Result<(f64, f64), Fault> {
    let durations = sqlx::query_as(
        "select coalesce(min(duration_in_sec), 0), coalesce(max(duration_in_sec), 0)
         from instance
         where customer_id = $1 and test_report_id = $2 and result <> 'NotExecuted'
           and duration_in_sec between $3 and $4",
    )
    .bind(customer)
    .bind(report)
    .bind(range.start())
    .bind(range.end())
    .fetch_one(db)
    .await?;
    Ok(durations)
}

/// Fails unless the report has a row of the instance.
pub async fn check_exists(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    report: TestReportId,
    id: InstanceId,
) -> Result<(), Fault> {
    select("where customer_id = $1 and test_report_id = $2 and id = $3")
        .bind(customer)
        .bind(report)
        .bind(id)
        .fetch_optional(db)
        .await?
        .map(drop)
        .ok_or(Fault::NotFound("instance"))
}

#[derive(FromRow)]
struct StoredInstance {
    #[sqlx(flatten)]
    instance: Instance,
    stored_steps: Vec<u8>,
}

/// Reads an instance, and its steps in their stored form.
pub async fn get(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    report: TestReportId,
    id: InstanceId,
) -> Result<(Instance, Vec<u8>), Fault> {
    let found: Option<StoredInstance> = sqlx::query_as(AssertSqlSafe(format!(
        "select i.id, i.test_report_id as test_reports_id, i.instance_nr, i.start_date_time,
                i.finish_date_time, i.duration_in_sec, i.result, i.reporter, i.variant, i.attempt,
                coalesce(d.artifacts_uri, '') as artifacts_uri,
                coalesce(d.report_uri, '') as report_uri,
                coalesce(d.debug_log_uri, '') as debug_log_uri,
                coalesce(d.execution_log_uri, '') as execution_log_uri,
                coalesce(d.installation_log_uri, '') as installation_log_uri,
                coalesce(d.steps, '') as stored_steps
         from instance i
         left join attempt d on d.customer_id = i.customer_id
             and d.test_report_id = i.test_report_id and d.instance_nr = i.instance_nr
             and d.attempt = i.attempt
         where i.customer_id = $1 and i.test_report_id = $2 and i.id = $3 and {IS_KEPT}"
    )))
    .bind(customer)
    .bind(report)
    .bind(id)
    .fetch_optional(db)
    .await?;
    let stored = found.ok_or(Fault::NotFound("instance"))?;
    Ok((stored.instance, stored.stored_steps))
}

/// The fields of an earlier step that a history shows.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct EarlierStep {
    step_nr: i32,
    #[serde(with = "EnumName::<TestResult>")]
    result: i32,
    duration_in_sec: f64,
}

/// Returns the steps of the same instance in the latest earlier reports of the test case, newest
/// first.
pub async fn history(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    report: TestReportId,
    instance_nr: i32,
) -> Result<Vec<StepHistory>, Fault> {
    let earlier: Vec<(i32, Vec<u8>)> = sqlx::query_as(
        "select e.execution_number, d.steps
         from (
             select id, execution_id, execution_number
             from test_report
             where customer_id = $1
               and test_case_id =
                   (select test_case_id from test_report where customer_id = $1 and id = $2)
               and execution_id <
                   (select execution_id from test_report where customer_id = $1 and id = $2)
             order by execution_id desc
             limit $4
         ) as e
         join attempt d
             on d.customer_id = $1 and d.test_report_id = e.id and d.instance_nr = $3
                 and d.result is null
         order by e.execution_id desc",
    )
    .bind(customer)
    .bind(report)
    .bind(instance_nr)
    .bind(HISTORY)
    .fetch_all(db)
    .await?;
    let mut history = Vec::new();
    for (execution_number, stored) in earlier {
        history.extend(steps::read::<EarlierStep>(&stored)?.into_iter().map(|step| StepHistory {
            execution_number,
            step_nr: step.step_nr,
            result: step.result,
            duration_in_sec: step.duration_in_sec,
        }));
    }
    Ok(history)
}

/// Inserts new instances of a locked execution.
pub async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    reports: &[TestReportState],
    instances: &[&NewInstance],
) -> Result<(), Fault> {
    let texts = |instance: &&NewInstance| instance.reporter.len() + instance.variant.len();
    for part in bounded(instances, texts) {
        insert_part(tx, customer, reports, part).await?;
    }
    Ok(())
}

async fn insert_part(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    reports: &[TestReportState],
    instances: &[&NewInstance],
) -> Result<(), Fault> {
    sqlx::query(
        "insert into instance (customer_id, test_report_id, id, instance_nr, result,
             start_date_time, finish_date_time, duration_in_sec, reporter, variant, attempt)
         select $1, instance.*
         from unnest($2::text[]::uuid[], $3::uuid[], $4::int[], $5::text[], $6::timestamptz[],
             $7::timestamptz[], $8::float8[], $9::text[], $10::text[], $11::int[]) as instance",
    )
    .bind(customer)
    .bind(column(instances, |instance| reports[instance.report].published.id.as_str()))
    .bind(column(instances, |instance| instance.id))
    .bind(column(instances, |instance| instance.instance_nr))
    .bind(column(instances, |instance| name_of(instance.last.outcome.result)))
    .bind(column(instances, |instance| instance.last.outcome.start_date_time))
    .bind(column(instances, |instance| instance.last.outcome.finish_date_time))
    .bind(column(instances, |instance| instance.last.outcome.duration_in_sec))
    .bind(column(instances, |instance| instance.reporter.as_str()))
    .bind(column(instances, |instance| instance.variant.as_str()))
    .bind(column(instances, |instance| instance.last.number.max(1)))
    .execute(&mut **tx)
    .await?;
    Ok(())
}
