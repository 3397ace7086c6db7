//! The instances of an export in PostgreSQL. Every statement is bound to one customer.

use assay_ledger::{instance::steps, progress::instance::Outcome};
use assay_proto::{CustomerId, ExecutionId, Fault, TestReportId, TestResult, Timestamp, value_of};
use futures::TryStreamExt;
use sqlx::{FromRow, PgExecutor};

use super::{
    cursor::Stored,
    instance::{EarlierAttempt, Totals},
};

/// An instance of one of several reports.
#[derive(FromRow)]
pub(super) struct StoredInstance {
    /// The number of its report among those, from 1.
    report_nr: i64,
    instance_nr: i32,
    pub(super) variant: String,
    start_date_time: Option<Timestamp>,
    finish_date_time: Option<Timestamp>,
    duration_in_sec: f64,
    result: String,
    pub(super) stored_steps: Vec<u8>,
    /// The result, duration and steps of each earlier attempt. Steps are those of the latest, as far as there is room.
    earlier: Vec<(String, f64, Option<Vec<u8>>)>,
}

impl Stored for StoredInstance {
    fn report_nr(&self) -> i64 {
        self.report_nr
    }

    fn place(&self) -> (i32, i32) {
        (self.instance_nr, 0)
    }
}

impl StoredInstance {
    pub(super) fn outcome(&self) -> Result<Outcome, Fault> {
        Ok(Outcome {
            result: stored_result(&self.result)?,
            start_date_time: self.start_date_time,
            finish_date_time: self.finish_date_time,
            duration_in_sec: self.duration_in_sec,
        })
    }

    /// Returns the attempts before the last one.
    pub(super) fn earlier(&self) -> Result<Vec<EarlierAttempt>, Fault> {
        let mut room = steps::EARLIER;
        let attempt = |(result, seconds, stored): &(String, f64, Option<Vec<u8>>)| {
            let result = stored_result(result)?;
            let steps = steps::read_within(stored.as_deref(), result.into(), &mut room)?;
            Ok(EarlierAttempt { result, seconds: *seconds, steps })
        };
        let latest_first: Result<Vec<_>, Fault> = self.earlier.iter().rev().map(attempt).collect();
        let mut attempts = latest_first?;
        attempts.reverse();
        Ok(attempts)
    }
}

fn stored_result(name: &str) -> Result<TestResult, Fault> {
    value_of(name).ok_or_else(|| Fault::internal("an unknown result is stored"))
}

/// Reads the next instances of reports with their steps, ordered by report and number. Instances of
/// the first report follow the number `after`.
pub(super) async fn next(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    reports: &[TestReportId],
    after: i32,
    limit: i64,
) -> Result<Vec<StoredInstance>, Fault> {
    let instances = sqlx::query_as(
        "select i.report_nr, i.instance_nr, i.variant, i.start_date_time, i.finish_date_time,
                i.duration_in_sec, i.result, coalesce(d.steps, '') as stored_steps,
                case when i.attempt = 1 then '{}' else array(
                    select row(a.result, a.duration_in_sec,
                        case when sum(octet_length(a.steps)) over (order by a.attempt desc) <= $5
                            then a.steps end)
                    from attempt a
                    where a.customer_id = $1 and a.test_report_id = i.id
                      and a.instance_nr = i.instance_nr and a.attempt < i.attempt
                    order by a.attempt
                ) end as earlier
         from (
             select report.report_nr, report.id, instance.*
             from unnest($2::uuid[]) with ordinality as report (id, report_nr)
             cross join lateral (
                 select instance_nr, variant, start_date_time, finish_date_time, duration_in_sec,
                        result, attempt
                 from instance
                 where customer_id = $1 and test_report_id = report.id
                   and instance_nr > case when report.report_nr = 1 then $3 else 0 end
                 order by instance_nr
                 limit $4
             ) as instance
             order by report.report_nr, instance_nr
             limit $4
         ) as i
         left join attempt d on d.customer_id = $1 and d.test_report_id = i.id
             and d.instance_nr = i.instance_nr and d.attempt = i.attempt
         order by i.report_nr, i.instance_nr",
    )
    .bind(customer)
    .bind(reports)
    .bind(after)
    .bind(limit)
    .bind(i64::try_from(steps::EARLIER).map_err(Fault::internal)?)
    .fetch_all(db)
    .await?;
    Ok(instances)
}

/// An attempt at an instance of one of several reports.
#[derive(FromRow)]
pub(super) struct StoredAttempt {
    /// The number of its report among those, from 1.
    report_nr: i64,
    pub(super) instance_nr: i32,
    pub(super) reporter: String,
    pub(super) variant: String,
    pub(super) attempt: i32,
    result: String,
    start_date_time: Option<Timestamp>,
    finish_date_time: Option<Timestamp>,
    duration_in_sec: f64,
    pub(super) steps: Vec<u8>,
    pub(super) artifacts_uri: String,
    pub(super) report_uri: String,
    pub(super) debug_log_uri: String,
    pub(super) execution_log_uri: String,
    pub(super) installation_log_uri: String,
}

impl Stored for StoredAttempt {
    fn report_nr(&self) -> i64 {
        self.report_nr
    }

    fn place(&self) -> (i32, i32) {
        (self.instance_nr, self.attempt)
    }
}

impl StoredAttempt {
    pub(super) fn outcome(&self) -> Result<Outcome, Fault> {
        Ok(Outcome {
            result: stored_result(&self.result)?,
            start_date_time: self.start_date_time,
            finish_date_time: self.finish_date_time,
            duration_in_sec: self.duration_in_sec,
        })
    }
}

/// Reads the next attempts at instances of reports, ordered by report, instance and attempt, up to
/// limits of their number and of the size of their steps. Those of the first report follow the
/// instance and the attempt `after`. Returns whether there are no more.
pub(super) async fn next_attempts(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    reports: &[TestReportId],
    after: (i32, i32),
    (limit, size): (i64, usize),
) -> Result<(Vec<StoredAttempt>, bool), Fault> {
    let attempts = sqlx::query_as::<_, StoredAttempt>(
        "select report.report_nr, i.instance_nr, i.reporter, i.variant, a.*
         from unnest($2::uuid[]) with ordinality as report (id, report_nr)
         cross join lateral (
             select * from instance
             where customer_id = $1 and test_report_id = report.id
               and instance_nr >= case when report.report_nr = 1 then $3 else 0 end
             order by instance_nr
         ) as i
         cross join lateral (
             (select attempt, result, start_date_time, finish_date_time, duration_in_sec, steps,
                     artifacts_uri, report_uri, debug_log_uri, execution_log_uri,
                     installation_log_uri
              from attempt
              where customer_id = $1 and test_report_id = report.id
                and instance_nr = i.instance_nr and attempt < i.attempt)
             union all
             (select i.attempt, i.result, i.start_date_time, i.finish_date_time, i.duration_in_sec,
                     coalesce(d.steps, ''), coalesce(d.artifacts_uri, ''),
                     coalesce(d.report_uri, ''), coalesce(d.debug_log_uri, ''),
                     coalesce(d.execution_log_uri, ''), coalesce(d.installation_log_uri, '')
              from (select) as last
              left join attempt d on d.customer_id = $1 and d.test_report_id = report.id
                  and d.instance_nr = i.instance_nr and d.attempt = i.attempt)
         ) as a
         where report.report_nr > 1 or (i.instance_nr, a.attempt) > ($3, $4)
         order by report.report_nr, i.instance_nr, a.attempt
         limit $5",
    );
    let (instance, attempt) = after;
    let attempts = attempts.bind(customer).bind(reports).bind(instance).bind(attempt).bind(limit);
    let mut rows = attempts.fetch(db);
    let (mut read, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.try_next().await? {
        bytes += row.steps.len();
        read.push(row);
        if bytes >= size {
            return Ok((read, false));
        }
    }
    let is_complete = i64::try_from(read.len()).is_ok_and(|count| count < limit);
    Ok((read, is_complete))
}

/// Counts the tests of an execution by result. Missing instances count as skipped while their
/// report is pending or if it was canceled, and otherwise as errors.
pub(super) async fn totals(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<Totals, Fault> {
    let totals = sqlx::query_as(
        "select coalesce(sum(r.requested_instances_count), 0)::bigint as tests,
                coalesce(sum(i.failed), 0)::bigint as failures,
                (coalesce(sum(i.errors), 0) + coalesce(sum(r.missing) filter (where r.is_error), 0))
                    ::bigint as errors,
                (coalesce(sum(i.skipped), 0)
                    + coalesce(sum(r.missing) filter (where not r.is_error), 0))::bigint as skipped
         from (
             select id, requested_instances_count,
                    requested_instances_count - finished_instances_count as missing,
                    missing_result not in ('NotExecuted', 'Canceled') as is_error
             from test_report
             where customer_id = $1 and execution_id = $2
         ) as r
         cross join lateral (
             select count(*) filter (where result = 'Failed') as failed,
                    count(*) filter (where result in ('Error', 'Aborted')) as errors,
                    count(*) filter (where result = 'Canceled') as skipped
             from instance
             where customer_id = $1 and test_report_id = r.id
         ) as i",
    );
    Ok(totals.bind(customer).bind(execution).fetch_one(db).await?)
}
