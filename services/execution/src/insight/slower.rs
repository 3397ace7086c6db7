//! Test cases that have become slower, in PostgreSQL.
//!
//! Runs are compared in one test set, environment and branch, since durations differ between those. Nothing of this is
//! stored, so that deleted and late results count as they are now. When a client asks, test cases are selected by the
//! days on which they were among the slowest ones of an execution, and only the runs of those are read.

use assay_judge::Slowdown;
use assay_ledger::deletion::records::is_not_deleted;
use assay_proto::{CustomerId, Fault, ProjectId, TestCaseId};
use sqlx::{AssertSqlSafe, FromRow, PgPool};
use uuid::Uuid;

/// Maximum number of test cases whose runs are read.
const MOST_CANDIDATES: i64 = 50;

/// Number of their last runs that are read.
const RUNS: i64 = 100;

/// The runs of a test case that passed in a test set, an environment and a branch, the earliest first.
#[derive(FromRow)]
struct Runs {
    test_case_id: TestCaseId,
    executions: Vec<Uuid>,
    /// In seconds.
    durations: Vec<f64>,
    /// Number of the last runs that are in the days.
    recent: i64,
}

/// A test case that has become slower, once for each, with its columns.
#[derive(Default)]
pub(super) struct Slower {
    pub(super) test_cases: Vec<TestCaseId>,
    /// In seconds.
    pub(super) sizes: Vec<f64>,
    /// The first execution in which it takes longer, and the one before.
    pub(super) since: Vec<Uuid>,
    pub(super) before: Vec<Uuid>,
    /// The medians of its durations, in seconds.
    pub(super) durations_since: Vec<f64>,
    pub(super) durations_before: Vec<f64>,
}

impl Slower {
    /// Finds the test cases that have become slower within a number of days, today included, on a branch or on any; each
    /// where it did so most.
    pub(super) async fn find(
        db: &PgPool,
        customer: CustomerId,
        project: ProjectId,
        days: i32,
        branch: Option<&str>,
    ) -> Result<Self, Fault> {
        let mut runs: Vec<(Slowdown, Runs)> = read(db, customer, project, days, branch)
            .await?
            .into_iter()
            .filter_map(|runs| Some((runs.slowdown()?, runs)))
            .collect();
        runs.sort_by(|(one, _), (other, _)| other.size().total_cmp(&one.size()));
        let mut slower = Self::default();
        for (slowdown, runs) in &runs {
            if !slower.test_cases.contains(&runs.test_case_id) {
                slower.push(slowdown, runs);
            }
        }
        Ok(slower)
    }

    fn push(&mut self, slowdown: &Slowdown, runs: &Runs) {
        self.test_cases.push(runs.test_case_id);
        self.sizes.push(slowdown.size());
        self.since.push(runs.executions[slowdown.at]);
        self.before.push(runs.executions[slowdown.at - 1]);
        self.durations_since.push(slowdown.since);
        self.durations_before.push(slowdown.before);
    }
}

impl Runs {
    /// Returns the slowdown of these runs, if it is within the days.
    fn slowdown(&self) -> Option<Slowdown> {
        let recent = usize::try_from(self.recent).ok()?;
        Slowdown::of(&self.durations)
            .filter(|slowdown| slowdown.at + recent >= self.durations.len())
    }
}

async fn read(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    days: i32,
    branch: Option<&str>,
) -> Result<Vec<Runs>, Fault> {
    let candidates = candidates();
    let read = sqlx::query_as(AssertSqlSafe(format!(
        "with candidate as materialized ({candidates})
         select candidate.test_case_id, array_agg(e.id order by e.id) as executions,
                array_agg(r.total_duration_in_sec order by e.id) as durations,
                count(*) filter (where e.id >= first_id_at(
                    ((now() at time zone 'utc')::date - $3 + 1)::timestamp at time zone 'utc'
                )) as recent
         from candidate
         cross join lateral (
             select execution_id, total_duration_in_sec, result, is_flaky from test_report
             where customer_id = $1 and test_case_id = candidate.test_case_id
             order by execution_id desc
             limit {RUNS}
         ) as r
         join execution e on e.customer_id = $1 and e.id = r.execution_id
             and e.rolled_up_at < 'infinity' and ($4::text is null or e.branch = $4)
         where r.result = 'Passed' and not r.is_flaky
         group by candidate.test_case_id, e.test_set_id, e.environment_id, e.branch"
    )));
    let read = read.bind(customer).bind(project).bind(days).bind(branch);
    Ok(read.fetch_all(db).await?)
}

/// The selection of the test cases that were slow: on how many days, on which one first, and the longest and the
/// shortest of the averages of these days.
const SLOW: &str = "
    select test_case_id, count(*) as days, min(day) as first_day, max(average) as longest,
           min(average) as shortest
    from (
        select test_case_id, day, sum(duration_in_sec) / sum(runs) as average
        from case_day
        where customer_id = $1 and project_id = $2
          and day > (now() at time zone 'utc')::date - $3
          and ($4::text is null or branch = $4) and is_slow
        group by test_case_id, day
    ) as by_day
    group by test_case_id";

/// Returns the selection of the test cases that took longer on one of those days than on another one, the largest ratios
/// first. One that was not slow on the first day took no longer then than the fastest of the slow ones, deleted ones
/// included: they only raise ratios. One with a single slow day may have become slower on that day.
fn candidates() -> String {
    let is_not_deleted = is_not_deleted("$2", "compared.test_case_id");
    format!(
        "select test_case_id
         from (
             select test_case_id, days, longest,
                    case when first_day = min(first_day) over () then shortest
                         else min(shortest) over () end as shortest
             from ({SLOW}) as slow
         ) as compared
         where (days = 1 or longest > 1.1 * shortest) and {is_not_deleted}
         order by longest / nullif(shortest, 0) desc nulls first, longest desc, test_case_id desc
         limit {MOST_CANDIDATES}"
    )
}
