//! The differences between the stored results of days and the derived ones, and their repair.

use assay_proto::Fault;
use sqlx::{AssertSqlSafe, PgTransaction};

use super::{KEY, MOST, SUMS, derived};

/// Returns a statement that lists the differences between the stored rows and the derived ones, as
/// the columns `noun`, `id`, `field`, `stored` and `derived`.
pub(crate) fn differences() -> String {
    let shown = |row: &str| {
        format!(
            "case when {row}.runs is not null then format(
                '%s runs, %s failed, %s newly, %s flaky, %s recovered, %s s%s, last %s in %s',
                {row}.runs, {row}.failures, {row}.new_failures, {row}.flaky_runs,
                {row}.recoveries, {row}.duration_in_sec, case when {row}.is_slow then ', slow' end,
                case when {row}.last_failed then 'failed' else 'passed' end,
                {row}.last_execution_id
            ) end"
        )
    };
    let (stored, derived, pairs) = (shown("stored"), shown("derived"), pairs());
    format!(
        "select 'test case' as noun, test_case_id::text as id,
                concat_ws(' ', 'results of', day, nullif(branch, '')) as field,
                {stored} as stored, {derived} as derived
         {pairs}
         order by test_case_id, day, branch"
    )
}

/// The stored rows and the derived ones that differ.
fn pairs() -> String {
    let derived = derived(&format!(
        "e.rolled_up_at < 'infinity' and e.request_time
             >= ((now() at time zone 'utc')::date - {MOST} + 1)::timestamp at time zone 'utc'"
    ));
    format!(
        "from (
             select stored.* from case_day stored
             where day > (now() at time zone 'utc')::date - {MOST} and not exists (
                 select from deletion d
                 where d.customer_id = stored.customer_id
                   and d.project_id in (stored.project_id, '00000000-0000-0000-0000-000000000000')
             )
         ) as stored
         full join ({derived}) as derived using ({KEY})
         where (stored.runs, stored.failures, stored.new_failures, stored.flaky_runs,
                stored.recoveries, stored.is_slow, stored.last_execution_id, stored.last_failed)
             is distinct from
               (derived.runs, derived.failures, derived.new_failures, derived.flaky_runs,
                derived.recoveries, derived.is_slow, derived.last_execution_id,
                derived.last_failed)
            or abs(stored.duration_in_sec - derived.duration_in_sec)
               > 1e-6 * greatest(1, derived.duration_in_sec)"
    )
}

/// Replaces the rows that differ from the derived ones, while no execution is added. Returns their
/// number.
pub(crate) async fn repair(tx: &mut PgTransaction<'_>) -> Result<u64, Fault> {
    sqlx::query("lock table case_day in share row exclusive mode").execute(&mut **tx).await?;
    let pairs = pairs();
    let columns: Vec<_> = SUMS.split(',').map(|sum| format!("derived.{}", sum.trim())).collect();
    let columns = columns.join(", ");
    let updates: Vec<_> =
        SUMS.split(',').map(str::trim).map(|sum| format!("{sum} = excluded.{sum}")).collect();
    let updates = updates.join(", ");
    let repair = format!(
        "with differing as materialized (select {KEY}, {columns} {pairs}),
         gone as (
             delete from case_day
             using differing
             where differing.runs is null and case_day.customer_id = differing.customer_id
               and case_day.project_id = differing.project_id
               and case_day.test_case_id = differing.test_case_id
               and case_day.day = differing.day and case_day.branch = differing.branch
         ),
         written as (
             insert into case_day ({KEY}, {SUMS})
             select {KEY}, {SUMS} from differing where runs is not null
             on conflict on constraint case_day_pkey do update set {updates}
         )
         select count(*) from differing"
    );
    let repaired: i64 = sqlx::query_scalar(AssertSqlSafe(repair)).fetch_one(&mut **tx).await?;
    Ok(repaired.unsigned_abs())
}
