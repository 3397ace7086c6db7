//! The causes of the failures of an execution, in PostgreSQL.

use std::collections::HashMap;

use assay_fingerprint::Fingerprint;
use assay_ledger::{
    failure::judged::VERSION, progress::execution::ExecutionState, verdict::store::UNREVIEWED,
};
use assay_proto::{CustomerId, ExecutionId, Fault, Listed, RowOf, execution::Failure};
use assay_rpc::list::{Rows, Slice};
use futures::{StreamExt, stream};
use sqlx::{AssertSqlSafe, FromRow, PgPool};
use uuid::Uuid;

use super::place::Place;
use crate::test_report::entries;

/// Number of causes whose reports are read at a time.
const CAUSES_AT_ONCE: usize = 20;

/// A cause with the ids of its first reports.
#[derive(FromRow)]
struct Cause {
    #[sqlx(flatten)]
    failure: Failure,
    report_ids: Vec<Uuid>,
}

/// A cause as a row of the list, which shows a record of it.
pub(crate) struct Placed<T> {
    record: T,
    cursor: String,
}

impl Placed<Failure> {
    /// Shows another record of the cause.
    pub(crate) fn map<T>(self, of: impl FnOnce(Failure) -> T) -> Placed<T> {
        Placed { record: of(self.record), cursor: self.cursor }
    }
}

impl<T: Listed> Listed for Placed<T> {
    fn cursor(&self) -> &str {
        &self.cursor
    }

    fn size(&self) -> usize {
        self.record.size()
    }
}

impl<T: RowOf<T>> RowOf<T> for Placed<T> {
    fn render(&self, text: &mut Vec<u8>) -> Result<(), Fault> {
        self.record.render(text)
    }
}

/// Selects the failures of an execution by their test reports.
pub(crate) struct Filter {
    pub(crate) change: Option<String>,
    pub(crate) muted: Option<bool>,
    /// Whether only causes are listed of which test reports need a review.
    pub(crate) unreviewed: bool,
    /// The only cause that is listed.
    pub(crate) fingerprint: Option<Fingerprint>,
}

/// Lists causes, each with its first five reports: [as many as lead the list](crate::test_report::LEADING_CAUSES) with
/// the most test cases, and then the others in the order of their fingerprints. A cause that the filter selects all the
/// time is on exactly one page, even if its number of test cases changes between two pages.
pub(crate) async fn list(
    db: &PgPool,
    customer: CustomerId,
    state: &ExecutionState,
    filter: &Filter,
    slice: &Slice,
) -> Result<Rows<Placed<Failure>>, Fault> {
    let id = ExecutionId::from_record(&state.execution.id)?;
    let mut place = slice.after.as_deref().map(Place::read).transpose()?.unwrap_or_default();
    let causes = causes(db, customer, id, filter, slice, &place).await?;
    let mut placed = Vec::with_capacity(causes.len());
    for cause in causes {
        let fingerprint = cause.failure.fingerprint.parse::<Fingerprint>();
        place.pass(fingerprint.map_err(Fault::internal)?);
        placed.push(Placed { record: cause, cursor: place.cursor() });
    }
    let parts = stream::iter(placed.chunks(CAUSES_AT_ONCE));
    slice.read_parts(parts.then(|part| with_reports(db, customer, state, part))).await
}

/// Returns causes with their first reports.
async fn with_reports(
    db: &PgPool,
    customer: CustomerId,
    state: &ExecutionState,
    causes: &[Placed<Cause>],
) -> Result<Vec<Placed<Failure>>, Fault> {
    let ids = causes.iter().flat_map(|cause| &cause.record.report_ids);
    let ids: Vec<_> = ids.copied().collect();
    let reports = entries::of_ids(db, customer, state, &ids).await?;
    let reports: HashMap<_, _> =
        reports.iter().map(|report| (report.id.as_str(), report)).collect();
    let failures = causes.iter().map(|Placed { record: Cause { failure, report_ids }, cursor }| {
        let ids = report_ids.iter().map(Uuid::to_string);
        let reports = ids.filter_map(|id| reports.get(id.as_str()).copied().cloned()).collect();
        let record = Failure { reports, ..failure.clone() };
        Placed { record, cursor: cursor.clone() }
    });
    Ok(failures.collect())
}

async fn causes(
    db: &PgPool,
    customer: CustomerId,
    execution: ExecutionId,
    filter: &Filter,
    slice: &Slice,
    place: &Place,
) -> Result<Vec<Cause>, Fault> {
    let failures = sqlx::query_as(AssertSqlSafe(format!(
        "with failed as materialized (
             select f.fingerprint, f.headline, f.project_id, r.id, {UNREVIEWED} as is_unreviewed,
                    dense_rank() over (partition by f.fingerprint order by r.id) as nr
             from kept_failure f
             join test_report r on r.customer_id = f.customer_id and r.id = f.test_report_id
             where f.customer_id = $1 and f.execution_id = $2
               and ($3::text is null or r.change = $3)
               and ($7::bool is null or r.is_muted = $7)
               and ($4::text is null or f.fingerprint = any(array(
                   select fingerprint from kept_failure
                   where customer_id = $1 and execution_id = $2 and headline ilike $4
               )))
               and ($11::bytea is null or f.fingerprint = $11)
         ),
         cause as (
             select fingerprint, project_id, min(headline) as headline, max(nr)::int as count,
                    count(distinct headline)::int as variants,
                    (count(distinct id) filter (where is_unreviewed))::int as unreviewed
             from failed
             group by fingerprint, project_id
         ),
         page as materialized (
             select *, least(row_number() over (order by count desc, fingerprint), $9::bigint + 1) as place
             from cause
             where encode(substr(fingerprint, 1, 8), 'hex') <> all($10::text[])
               and ($5::bytea is null or fingerprint > $5)
               and (unreviewed > 0 or not $8)
             order by place, fingerprint
             limit $6
         ),
         listed as (
             select fingerprint, array_agg(id order by id) as report_ids
             from (
                 select distinct fingerprint, id from failed
                 where nr <= 5 and fingerprint in (select fingerprint from page)
             ) as first_reports
             group by fingerprint
         )
         select encode(fingerprint, 'hex') as fingerprint, headline, count, variants, unreviewed,
                first.execution_id as first_execution_id, first.request_time as first_seen, report_ids,
                data_version
         from page
         join listed using (fingerprint)
         cross join lateral (
             select f.execution_id, e.request_time
             from kept_failure f
             join execution e on e.customer_id = f.customer_id and e.id = f.execution_id
             where f.customer_id = $1 and f.project_id = page.project_id
               and f.fingerprint = page.fingerprint
             order by f.execution_id
             limit 1
         ) as first
         cross join lateral (
             select {VERSION} as data_version
             from kept_failure f
             join test_report r on r.customer_id = f.customer_id and r.id = f.test_report_id
             where f.customer_id = $1 and f.execution_id = $2 and f.fingerprint = page.fingerprint
         ) as judged
         order by place, page.fingerprint"
    )));
    Ok(failures
        .bind(customer)
        .bind(execution)
        .bind(&filter.change)
        .bind(slice.pattern.as_deref())
        .bind(place.last())
        .bind(slice.limit)
        .bind(filter.muted)
        .bind(filter.unreviewed)
        .bind(i64::try_from(place.following()).map_err(Fault::internal)?)
        .bind(place.leading())
        .bind(filter.fingerprint.as_ref().map(|one| &one.as_bytes()[..]))
        .fetch_all(db)
        .await?)
}
