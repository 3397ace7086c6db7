//! The causes of the failures of an execution, in PostgreSQL.

use std::collections::HashMap;

use assay_fingerprint::Fingerprint;
use assay_ledger::{progress::execution::ExecutionState, verdict::store::UNREVIEWED};
use assay_proto::{CustomerId, ExecutionId, Fault, Listed, RowOf, execution::Failure};
use assay_rpc::list::{Rows, Slice};
use futures::{StreamExt, stream};
use sqlx::{AssertSqlSafe, FromRow, PgPool};
use uuid::Uuid;

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

/// The place of a cause in the list. It has the number of test cases by which the cause was listed: the cause
/// itself may have fewer when the next page is read, because some were muted meanwhile, and the causes between both
/// places would be left out.
#[derive(Clone, Copy)]
struct Place {
    count: i32,
    fingerprint: Fingerprint,
}

impl Place {
    /// Reads the cursor of a request.
    fn read(cursor: &str) -> Result<Self, Fault> {
        let place = cursor.split_once('-').and_then(|(count, fingerprint)| {
            Some(Self { count: count.parse().ok()?, fingerprint: fingerprint.parse().ok()? })
        });
        place.ok_or_else(|| Fault::invalid("cursor", "must be a cursor from a response"))
    }
}

/// A cause as a row of the list, which shows a record of it.
pub(crate) struct Placed<T> {
    record: T,
    cursor: String,
}

impl Placed<Failure> {
    fn new(failure: Failure) -> Self {
        let cursor = format!("{}-{}", failure.count, failure.fingerprint);
        Self { record: failure, cursor }
    }

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
}

/// Lists causes, those with the most test cases first, each with its first five reports. A cause that loses test
/// cases between two pages may be listed again, but no cause is left out because of that.
pub(crate) async fn list(
    db: &PgPool,
    customer: CustomerId,
    state: &ExecutionState,
    filter: &Filter,
    slice: &Slice,
) -> Result<Rows<Placed<Failure>>, Fault> {
    let id = ExecutionId::from_record(&state.execution.id)?;
    let causes = causes(db, customer, id, filter, slice).await?;
    let parts = stream::iter(causes.chunks(CAUSES_AT_ONCE));
    slice.read_parts(parts.then(|part| with_reports(db, customer, state, part))).await
}

/// Returns causes with their first reports.
async fn with_reports(
    db: &PgPool,
    customer: CustomerId,
    state: &ExecutionState,
    causes: &[Cause],
) -> Result<Vec<Placed<Failure>>, Fault> {
    let ids: Vec<_> = causes.iter().flat_map(|cause| &cause.report_ids).copied().collect();
    let reports = entries::of_ids(db, customer, state, &ids).await?;
    let reports: HashMap<_, _> =
        reports.iter().map(|report| (report.id.as_str(), report)).collect();
    let failures = causes.iter().map(|Cause { failure, report_ids }| {
        let ids = report_ids.iter().map(Uuid::to_string);
        let reports = ids.filter_map(|id| reports.get(id.as_str()).copied().cloned()).collect();
        Placed::new(Failure { reports, ..failure.clone() })
    });
    Ok(failures.collect())
}

async fn causes(
    db: &PgPool,
    customer: CustomerId,
    execution: ExecutionId,
    filter: &Filter,
    slice: &Slice,
) -> Result<Vec<Cause>, Fault> {
    let after = slice.after.as_deref().map(Place::read).transpose()?;
    let failures = sqlx::query_as(AssertSqlSafe(format!(
        "with failed as materialized (
             select f.fingerprint, f.headline, f.project_id, r.id, {UNREVIEWED} as is_unreviewed,
                    dense_rank() over (partition by f.fingerprint order by r.id) as nr
             from kept_failure f
             join test_report r on r.customer_id = f.customer_id and r.id = f.test_report_id
             where f.customer_id = $1 and f.execution_id = $2
               and ($3::text is null or r.change = $3)
               and ($7::bool is null or r.is_muted = $7)
               and ($4::text is null or f.headline ilike $4)
         ),
         cause as (
             select fingerprint, project_id, min(headline) as headline, max(nr)::int as count,
                    count(distinct headline)::int as variants,
                    (count(distinct id) filter (where is_unreviewed))::int as unreviewed
             from failed
             group by fingerprint, project_id
         ),
         page as materialized (
             select * from cause
             where ($5::bytea is null or (count, fingerprint) < ($9::int, $5))
               and (unreviewed > 0 or not $8)
             order by count desc, fingerprint desc
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
                first.execution_id as first_execution_id, first.request_time as first_seen, report_ids
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
         order by count desc, page.fingerprint desc"
    )));
    Ok(failures
        .bind(customer)
        .bind(execution)
        .bind(&filter.change)
        .bind(slice.pattern.as_deref())
        .bind(after.as_ref().map(|place| &place.fingerprint.as_bytes()[..]))
        .bind(slice.limit)
        .bind(filter.muted)
        .bind(filter.unreviewed)
        .bind(after.map(|place| place.count))
        .fetch_all(db)
        .await?)
}
