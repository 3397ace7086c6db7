//! Rankings of test cases, in PostgreSQL.

use assay_ledger::deletion::records::is_not_deleted;
use assay_proto::{
    CustomerId, Fault, ProjectId, TestCaseId,
    execution::{Insight, InsightKind},
};
use assay_rpc::list::{Rows, Slice};
use sqlx::{AssertSqlSafe, PgPool};

use super::slower::Slower;

/// Maximum number of test cases that are considered, those with the highest scores.
const MOST_CANDIDATES: i64 = 5000;

/// The ranking that a client asks for.
#[derive(Clone, Debug)]
pub(super) struct Ranking {
    pub(super) kind: InsightKind,
    pub(super) days: i32,
    pub(super) branch: Option<String>,
}

/// The selected days of a test case that has the alias `candidate`, `ranked` or `page`.
macro_rules! days_of {
    ($case:literal) => {
        concat!(
            "from case_day d
             where d.customer_id = $1 and d.project_id = $2 and d.test_case_id = ",
            $case,
            ".test_case_id and d.day > (now() at time zone 'utc')::date - $3
               and ($4::text is null or d.branch = $4)"
        )
    };
}

/// The selection of the candidates with their own scores.
const CANDIDATES: &str = "select test_case_id, score from candidate";

/// The SQL of a ranking.
struct Rules {
    /// The days that make a test case a candidate, in the words of a partial index.
    days: &'static str,
    /// The value of these days that candidates are ordered by.
    score: &'static str,
    /// The sums that candidates have.
    having: &'static str,
    /// The selection of the test cases with their scores, if that is not the one above.
    ranked: &'static str,
    /// A join that leaves out test cases. It is only made for as many as a page needs.
    filter: &'static str,
    /// The selection of the execution since which a test case on the page fails or takes longer, and of the last one
    /// before it.
    since: &'static str,
}

/// The selection for rankings that do not say since when.
const NEVER: &str = "select null::uuid as id, null::uuid as before_id,
                            null::float8 as duration_before_in_sec, null::float8 as duration_since_in_sec";

/// The selection for those that have begun to fail: on the day of their score, and after having passed in the same series.
const BEGAN_TO_FAIL: &str = "
    select first.id, before.id as before_id, null::float8 as duration_before_in_sec,
           null::float8 as duration_since_in_sec
    from (
        select e.id, e.test_set_id, e.environment_id, e.branch
        from test_report r
        join execution e on e.customer_id = $1 and e.id = r.execution_id
            and e.rolled_up_at < 'infinity' and ($4::text is null or e.branch = $4)
        where r.customer_id = $1 and r.test_case_id = page.test_case_id and r.change = 'New' and not e.is_outage
          and r.execution_id >= first_id_at(to_timestamp(page.score))
          and r.execution_id < first_id_at(to_timestamp(page.score) + interval '1 day')
        order by e.id desc
        limit 1
    ) as first
    left join lateral (
        select e.id
        from (
            select execution_id, result from test_report
            where customer_id = $1 and test_case_id = page.test_case_id and execution_id < first.id
            order by execution_id desc
            limit 100
        ) as r
        join execution e on e.customer_id = $1 and e.id = r.execution_id
        where r.result = 'Passed' and e.test_set_id = first.test_set_id
          and e.environment_id is not distinct from first.environment_id
          and e.branch is not distinct from first.branch
        order by r.execution_id desc
        limit 1
    ) as before on true";

/// The ranking of the test cases that have become slower: parameters of the statement have them.
const SLOWER: &str =
    "select * from unnest($8::uuid[], $9::float8[]) as slower (test_case_id, score)";

/// The selection for test cases that have become slower.
const BECAME_SLOWER: &str = "
    select slower.id, slower.before_id, slower.duration_before_in_sec, slower.duration_since_in_sec
    from unnest($8::uuid[], $10::uuid[], $11::uuid[], $12::float8[], $13::float8[])
        as slower (test_case_id, id, before_id, duration_before_in_sec, duration_since_in_sec)
    where slower.test_case_id = page.test_case_id";

impl Rules {
    fn of(kind: InsightKind) -> Self {
        match kind {
            InsightKind::Unspecified | InsightKind::Flaky => Self {
                days: "(flaky_runs > 0 or recoveries > 0)",
                score: "sum(flaky_runs + recoveries)",
                having: "sum(flaky_runs) > 0 or sum(recoveries) > 1",
                ranked: CANDIDATES,
                filter: "",
                since: NEVER,
            },
            InsightKind::NewlyFailing => Self {
                days: "failures > 0",
                score: "extract(epoch from max(day) filter (where new_failures > 0))",
                having: "sum(new_failures) > 0",
                ranked: CANDIDATES,
                filter: concat!(
                    "join lateral (select d.last_failed ",
                    days_of!("ranked"),
                    " order by d.day desc, d.last_execution_id desc limit 1
                     ) as last on last.last_failed"
                ),
                since: BEGAN_TO_FAIL,
            },
            InsightKind::MostFailed => Self {
                days: "failures > 0",
                score: "sum(failures)",
                having: "true",
                ranked: CANDIDATES,
                filter: "",
                since: NEVER,
            },
            InsightKind::Slowest => Self {
                days: "is_slow",
                score: "max(duration_in_sec / runs)",
                having: "true",
                ranked: concat!(
                    "select candidate.test_case_id, total.average as score
                     from candidate cross join lateral (
                         select sum(d.duration_in_sec) / sum(d.runs) as average ",
                    days_of!("candidate"),
                    ") as total"
                ),
                filter: "",
                since: NEVER,
            },
            InsightKind::Slower => Self {
                days: "false",
                score: "0",
                having: "true",
                ranked: SLOWER,
                filter: "",
                since: BECAME_SLOWER,
            },
        }
    }

    /// Returns the statement. Its parameters are the customer, the project, the number of days, the
    /// branch, the cursor, the pattern and the limit; and the columns of the test cases that have become
    /// slower.
    fn statement(&self) -> String {
        let Self { days, score, having, ranked, filter, since } = self;
        let is_not_deleted = is_not_deleted("$2", "scored.test_case_id");
        let days_of_page = days_of!("page");
        format!(
            "with candidate as materialized (
                 select test_case_id, score
                 from (
                     select test_case_id, ({score})::float8 as score
                     from case_day
                     where customer_id = $1 and project_id = $2
                       and day > (now() at time zone 'utc')::date - $3
                       and ($4::text is null or branch = $4) and {days}
                     group by test_case_id
                     having {having}
                 ) as scored
                 where {is_not_deleted}
                 order by score desc, test_case_id desc
                 limit {MOST_CANDIDATES}
             ),
             ranked as materialized ({ranked}),
             page as materialized (
                 select ranked.test_case_id, ranked.score
                 from (
                     select * from ranked
                     where $5::uuid is null or (score, test_case_id) < (
                         select score, test_case_id from ranked where test_case_id = $5
                     )
                     order by score desc, test_case_id desc
                 ) as ranked {filter}
                 where $6::text is null or exists (
                     select from (
                         select test_case_identifier, test_case_name from test_report
                         where customer_id = $1 and test_case_id = ranked.test_case_id
                         order by execution_id desc
                         limit 1
                     ) as latest
                     where concat_ws(E'\\n', test_case_identifier, test_case_name) ilike $6
                 )
                 order by ranked.score desc, ranked.test_case_id desc
                 limit $7
             )
             select page.test_case_id, total.*, e.request_time as last_run, latest.*,
                    first.id as since_execution_id, first.request_time as since,
                    first.commit as since_commit, before.commit as commit_before,
                    since.duration_before_in_sec, since.duration_since_in_sec
             from page
             cross join lateral (
                 select sum(d.runs)::int as runs, sum(d.failures)::int as failures,
                        sum(d.flaky_runs)::int as flaky_runs,
                        sum(d.recoveries)::int as recoveries,
                        sum(d.duration_in_sec) / sum(d.runs) as average_duration_in_sec,
                        (array_agg(d.last_execution_id order by d.last_execution_id desc))[1]
                            as last_execution_id
                 {days_of_page}
             ) as total
             join execution e on e.customer_id = $1 and e.id = total.last_execution_id
             cross join lateral ({LATEST}) as latest
             left join lateral ({since}) as since on true
             left join execution first on first.customer_id = $1 and first.id = since.id
             left join execution before on before.customer_id = $1 and before.id = since.before_id
             order by page.score desc, page.test_case_id desc"
        )
    }
}

/// The name of a test case, empty if it has no reports, and its last 20 results among the 100 executions that were
/// requested last: ids of executions begin with that time. No more reports are read than are needed for 20 results.
const LATEST: &str = "
    select coalesce(newest.test_case_identifier, '') as test_case_identifier,
           coalesce(newest.test_case_name, '') as test_case_name,
           (
               select coalesce(string_agg(left(ran.result, 1), '' order by ran.execution_id), '')
               from (
                   select r.result, r.execution_id
                   from (
                       select execution_id, result from test_report
                       where customer_id = $1 and test_case_id = page.test_case_id
                       order by execution_id desc
                       limit 100
                   ) as r
                   where r.result in ('Passed', 'Failed', 'Error') and (
                       $4::text is null or $4 = (
                           select e.branch from execution e
                           where e.customer_id = $1 and e.id = r.execution_id
                       )
                   )
                   order by r.execution_id desc
                   limit 20
               ) as ran
           ) as outcomes
    from (select) as one
    left join lateral (
        select test_case_identifier, test_case_name from test_report
        where customer_id = $1 and test_case_id = page.test_case_id
        order by execution_id desc
        limit 1
    ) as newest on true";

/// Lists the test cases of a ranking.
pub(super) async fn list(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    ranking: &Ranking,
    slice: &Slice,
) -> Result<Rows<Insight>, Fault> {
    let after = TestCaseId::from_field_if_any("cursor", slice.after.as_deref())?;
    let insights = sqlx::query_as(AssertSqlSafe(Rules::of(ranking.kind).statement()))
        .bind(customer)
        .bind(project)
        .bind(ranking.days)
        .bind(&ranking.branch)
        .bind(after)
        .bind(&slice.pattern)
        .bind(slice.limit);
    let insights: Vec<Insight> = if ranking.kind == InsightKind::Slower {
        let Ranking { days, branch, .. } = ranking;
        let slower = Slower::find(db, customer, project, *days, branch.as_deref()).await?;
        let insights = insights.bind(slower.test_cases).bind(slower.sizes);
        let insights = insights.bind(slower.since).bind(slower.before);
        let insights = insights.bind(slower.durations_before).bind(slower.durations_since);
        insights.fetch_all(db).await?
    } else {
        insights.fetch_all(db).await?
    };
    Ok(insights.into())
}
