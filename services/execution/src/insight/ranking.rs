//! Rankings of test cases, in PostgreSQL.

use assay_ledger::deletion::records::is_not_deleted;
use assay_proto::{
    CustomerId, Fault, ProjectId, TestCaseId,
    execution::{Insight, InsightKind},
};
use assay_rpc::list::{Rows, Slice};
use sqlx::{AssertSqlSafe, PgPool};

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
}

impl Rules {
    fn of(kind: InsightKind) -> Self {
        match kind {
            InsightKind::Unspecified | InsightKind::Flaky => Self {
                days: "(flaky_runs > 0 or recoveries > 0)",
                score: "sum(flaky_runs + recoveries)",
                having: "sum(flaky_runs) > 0 or sum(recoveries) > 1",
                ranked: CANDIDATES,
                filter: "",
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
            },
            InsightKind::MostFailed => Self {
                days: "failures > 0",
                score: "sum(failures)",
                having: "true",
                ranked: CANDIDATES,
                filter: "",
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
            },
        }
    }

    /// Returns the statement. Its parameters are the customer, the project, the number of days, the
    /// branch, the cursor, the pattern and the limit.
    fn statement(&self) -> String {
        let Self { days, score, having, ranked, filter } = self;
        let is_not_deleted = is_not_deleted("$2", "case_day.test_case_id");
        let days_of_page = days_of!("page");
        format!(
            "with candidate as materialized (
                 select test_case_id, ({score})::float8 as score
                 from case_day
                 where customer_id = $1 and project_id = $2
                   and day > (now() at time zone 'utc')::date - $3
                   and ($4::text is null or branch = $4) and {days} and {is_not_deleted}
                 group by test_case_id
                 having {having}
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
             select page.test_case_id, total.*, e.request_time as last_run, latest.*
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
             order by page.score desc, page.test_case_id desc"
        )
    }
}

/// The name of a test case, and its results in the 100 executions that were requested last: ids of
/// executions begin with that time.
const LATEST: &str = "
    select coalesce((array_agg(r.test_case_identifier order by r.execution_id desc))[1], '')
               as test_case_identifier,
           coalesce((array_agg(r.test_case_name order by r.execution_id desc))[1], '') as test_case_name,
           coalesce(right(string_agg(left(r.result, 1), '' order by r.execution_id) filter (
               where r.result in ('Passed', 'Failed', 'Error') and ($4::text is null or e.branch = $4)
           ), 20), '') as outcomes
    from (
        select test_case_identifier, test_case_name, execution_id, result
        from test_report
        where customer_id = $1 and test_case_id = page.test_case_id
        order by execution_id desc
        limit 100
    ) as r
    join execution e on e.customer_id = $1 and e.id = r.execution_id";

/// Lists the test cases of a ranking.
pub(super) async fn list(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    ranking: &Ranking,
    slice: &Slice,
) -> Result<Rows<Insight>, Fault> {
    let after = TestCaseId::from_field_if_any("cursor", slice.after.as_deref())?;
    let insights = sqlx::query_as(AssertSqlSafe(Rules::of(ranking.kind).statement()));
    let insights: Vec<Insight> = insights
        .bind(customer)
        .bind(project)
        .bind(ranking.days)
        .bind(&ranking.branch)
        .bind(after)
        .bind(&slice.pattern)
        .bind(slice.limit)
        .fetch_all(db)
        .await?;
    Ok(insights.into())
}
