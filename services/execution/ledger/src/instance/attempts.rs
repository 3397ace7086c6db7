//! Attempts at instances in PostgreSQL. Every statement is bound to one customer.
//!
//! The instance has the outcome of its last attempt. The other attempts are rows of their own.

use assay_proto::{
    CustomerId, Fault, InstanceId, TestReportId, TestResult, execution::InstanceAttempt, name_of,
};
use assay_rpc::parts::bounded;
use sqlx::{FromRow, PgExecutor, PgTransaction};

use super::steps::EARLIER;
use crate::{
    column::column,
    progress::{
        instance::{Attempt, Detail, Links, NewInstance},
        merge::{AssignedResult, StoredInstance},
        report::TestReportState,
    },
};

#[derive(FromRow)]
struct Row {
    report_nr: i32,
    id: InstanceId,
    instance_nr: i32,
    reporter: String,
    variant: String,
    attempts: Vec<i32>,
}

/// Reads the stored instances that results are for, those of each report by number.
pub async fn stored(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    is_open: bool,
    reports: &[TestReportState],
    results: &[AssignedResult],
) -> Result<Vec<StoredInstance>, Fault> {
    // Instances of an open execution may have been announced.
    let has_instances = |report: &TestReportState| {
        report.finished_instances_count > 0 || is_open && report.requested_instances_count > 0
    };
    let sought: Vec<_> =
        results.iter().filter(|result| has_instances(&reports[result.report])).collect();
    if sought.is_empty() {
        return Ok(Vec::new());
    }
    // A named instance is found among those of its report.
    let rows: Vec<Row> = sqlx::query_as(
        "select distinct on (report_nr, instance_nr)
                sought.report_nr, i.id, i.instance_nr, i.reporter, i.variant,
                case when i.result = 'NotExecuted' then '{}'
                     else i.attempt || array(
                         select attempt from attempt a
                         where a.customer_id = $1 and a.test_report_id = sought.id
                           and a.instance_nr = i.instance_nr and a.attempt < i.attempt
                     ) end as attempts
         from unnest($2::int[], $3::text[]::uuid[], $4::int[], $5::text[], $6::text[])
             as sought (report_nr, id, instance_nr, reporter, variant)
         cross join lateral (
             (select id, instance_nr, reporter, variant, attempt, result from instance
              where customer_id = $1 and test_report_id = sought.id
                and instance_nr = sought.instance_nr)
             union all
             (select id, instance_nr, reporter, variant, attempt, result from instance
              where customer_id = $1 and test_report_id = sought.id
                and sought.instance_nr is null
                and reporter = sought.reporter and variant = sought.variant
              order by instance_nr
              limit 1)
         ) as i
         order by report_nr, instance_nr",
    )
    .bind(customer)
    .bind(column(&sought, |result| i32::try_from(result.report).unwrap_or(i32::MAX)))
    .bind(column(&sought, |result| reports[result.report].published.id.as_str()))
    .bind(column(&sought, |result| result.slot.number()))
    .bind(column(&sought, |result| result.slot.reporter()))
    .bind(column(&sought, |result| result.slot.variant()))
    .fetch_all(&mut **tx)
    .await?;
    let instance = |row: Row| {
        let Row { report_nr, id, instance_nr, reporter, variant, attempts } = row;
        let report = usize::try_from(report_nr).map_err(Fault::internal)?;
        Ok(StoredInstance { report, id, instance_nr, reporter, variant, attempts })
    };
    rows.into_iter().map(instance).collect()
}

/// Replaces the outcomes of stored instances by those of their last attempts. The outcomes before
/// are kept with their attempts, unless the instances were only announced.
pub async fn replace(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    reports: &[TestReportState],
    instances: &[&NewInstance],
) -> Result<(), Fault> {
    if instances.is_empty() {
        return Ok(());
    }
    let report = |instance: &&NewInstance| reports[instance.report].published.id.as_str();
    sqlx::query(
        "insert into attempt (customer_id, test_report_id, instance_nr, attempt, result,
             start_date_time, finish_date_time, duration_in_sec, steps, artifacts_uri, report_uri,
             debug_log_uri, execution_log_uri, installation_log_uri)
         select customer_id, test_report_id, instance_nr, attempt, result, start_date_time,
                finish_date_time, duration_in_sec, '', '', '', '', '', ''
         from unnest($2::text[]::uuid[], $3::int[]) as changed (test_report_id, instance_nr)
         join instance using (test_report_id, instance_nr)
         where customer_id = $1 and result <> 'NotExecuted'
         on conflict on constraint attempt_pkey do update
         set result = excluded.result, start_date_time = excluded.start_date_time,
             finish_date_time = excluded.finish_date_time,
             duration_in_sec = excluded.duration_in_sec",
    )
    .bind(customer)
    .bind(column(instances, report))
    .bind(column(instances, |instance| instance.instance_nr))
    .execute(&mut **tx)
    .await?;
    sqlx::query(
        "update instance
         set attempt = last.attempt, result = last.result, start_date_time = last.start,
             finish_date_time = last.finish, duration_in_sec = last.duration
         from unnest($2::text[]::uuid[], $3::int[], $4::int[], $5::text[], $6::timestamptz[],
             $7::timestamptz[], $8::float8[])
             as last (report, number, attempt, result, start, finish, duration)
         where customer_id = $1 and test_report_id = last.report and instance_nr = last.number",
    )
    .bind(customer)
    .bind(column(instances, report))
    .bind(column(instances, |instance| instance.instance_nr))
    .bind(column(instances, |instance| instance.last.number))
    .bind(column(instances, |instance| name_of(instance.last.outcome.result)))
    .bind(column(instances, |instance| instance.last.outcome.start_date_time))
    .bind(column(instances, |instance| instance.last.outcome.finish_date_time))
    .bind(column(instances, |instance| instance.last.outcome.duration_in_sec))
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// An attempt to insert, with its instance.
struct Inserted<'a> {
    instance: &'a NewInstance,
    attempt: &'a Attempt,
    /// Whether a later attempt has the outcome of the instance.
    is_earlier: bool,
}

impl Inserted<'_> {
    /// Returns the size of its texts, in bytes.
    fn texts(&self) -> usize {
        let Detail { steps, links } = &self.attempt.detail;
        let links = links.as_deref().map_or(0, |links| {
            let Links { artifacts, report, debug_log, execution_log, installation_log } = links;
            [artifacts, report, debug_log, execution_log, installation_log]
                .map(String::len)
                .iter()
                .sum()
        });
        steps.len() + links
    }

    /// Returns one of its links. Empty if it has none.
    fn link(&self, of: fn(&Links) -> &String) -> &str {
        self.attempt.detail.links.as_deref().map_or("", |links| of(links))
    }
}

/// Inserts the attempts of instances: the earlier ones, and the last ones that have details. Late
/// attempts are all earlier ones.
pub async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    reports: &[TestReportState],
    instances: impl Iterator<Item = &NewInstance>,
    are_late: bool,
) -> Result<(), Fault> {
    let empty = Detail::default();
    let attempts = instances.flat_map(|instance| {
        let earlier =
            instance.earlier.iter().map(|attempt| Inserted { instance, attempt, is_earlier: true });
        let attempt = &instance.last;
        let last = Inserted { instance, attempt, is_earlier: are_late };
        earlier.chain((are_late || attempt.detail != empty).then_some(last))
    });
    for part in bounded(&attempts.collect::<Vec<_>>(), Inserted::texts) {
        insert_part(tx, customer, reports, part).await?;
    }
    Ok(())
}

async fn insert_part(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    reports: &[TestReportState],
    attempts: &[Inserted<'_>],
) -> Result<(), Fault> {
    let result = |one: &Inserted<'_>| one.is_earlier.then(|| name_of(one.attempt.outcome.result));
    sqlx::query(
        "insert into attempt (customer_id, test_report_id, instance_nr, attempt, result,
             start_date_time, finish_date_time, duration_in_sec, steps, artifacts_uri, report_uri,
             debug_log_uri, execution_log_uri, installation_log_uri)
         select $1, attempt.*
         from unnest($2::text[]::uuid[], $3::int[], $4::int[], $5::text[], $6::timestamptz[],
             $7::timestamptz[], $8::float8[], $9::bytea[], $10::text[], $11::text[], $12::text[],
             $13::text[], $14::text[]) as attempt",
    )
    .bind(customer)
    .bind(column(attempts, |one| reports[one.instance.report].published.id.as_str()))
    .bind(column(attempts, |one| one.instance.instance_nr))
    .bind(column(attempts, |one| one.attempt.number))
    .bind(column(attempts, result))
    .bind(column(attempts, |one| one.attempt.outcome.start_date_time.filter(|_| one.is_earlier)))
    .bind(column(attempts, |one| one.attempt.outcome.finish_date_time.filter(|_| one.is_earlier)))
    .bind(column(attempts, |one| one.is_earlier.then_some(one.attempt.outcome.duration_in_sec)))
    .bind(column(attempts, |one| one.attempt.detail.steps.as_slice()))
    .bind(column(attempts, |one| one.link(|links| &links.artifacts)))
    .bind(column(attempts, |one| one.link(|links| &links.report)))
    .bind(column(attempts, |one| one.link(|links| &links.debug_log)))
    .bind(column(attempts, |one| one.link(|links| &links.execution_log)))
    .bind(column(attempts, |one| one.link(|links| &links.installation_log)))
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Ends the announced instances of reports with a result. Returns the report of each.
pub async fn end_announced(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    reports: &[&str],
    result: TestResult,
) -> Result<Vec<TestReportId>, Fault> {
    let ended = sqlx::query_scalar(
        "update instance set result = $3
         where customer_id = $1 and test_report_id = any($2::text[]::uuid[])
           and result = 'NotExecuted'
         returning test_report_id",
    );
    Ok(ended.bind(customer).bind(reports).bind(name_of(result)).fetch_all(&mut **tx).await?)
}

#[derive(FromRow)]
struct EarlierAttempt {
    #[sqlx(flatten)]
    attempt: InstanceAttempt,
    stored_steps: Option<Vec<u8>>,
}

/// Reads the attempts before the last one, in their order, with their steps in their stored form: those of the latest,
/// as far as there is room.
pub async fn earlier(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    report: TestReportId,
    (instance_nr, before): (i32, i32),
) -> Result<Vec<(InstanceAttempt, Option<Vec<u8>>)>, Fault> {
    let columns = InstanceAttempt::COLUMNS;
    let attempts: Vec<EarlierAttempt> = sqlx::query_as(sqlx::AssertSqlSafe(format!(
        "select {columns},
                case when sum(octet_length(steps)) over (order by attempt desc) <= $5 then steps end
                    as stored_steps
         from attempt
         where customer_id = $1 and test_report_id = $2 and instance_nr = $3 and attempt < $4
         order by attempt"
    )))
    .bind(customer)
    .bind(report)
    .bind(instance_nr)
    .bind(before)
    .bind(i64::try_from(EARLIER).map_err(Fault::internal)?)
    .fetch_all(db)
    .await?;
    Ok(attempts.into_iter().map(|one| (one.attempt, one.stored_steps)).collect())
}
