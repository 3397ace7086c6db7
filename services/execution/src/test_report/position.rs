//! The position of a report in a list of those of its execution, in PostgreSQL.

use assay_proto::{CustomerId, ExecutionId, Fault, TestReportId, execution::TestReportPosition};
use sqlx::{PgExecutor, Postgres, QueryBuilder};

use super::entries::{Filter, NAMED};

/// Number of causes that lead the list of causes, those with the most test cases first. The others follow in the order
/// of their fingerprints.
pub(crate) const LEADING_CAUSES: usize = 50;

/// A list of the reports of an execution.
pub(super) struct Listed {
    pub(super) filter: Filter,
    pub(super) pattern: Option<String>,
    /// Whether the list is one of causes, of which the most frequent lead.
    pub(super) by_cause: bool,
}

/// Returns the position of a report, which the list need not have: a review may have taken it out.
pub(super) async fn of(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    id: TestReportId,
    list: &Listed,
) -> Result<TestReportPosition, Fault> {
    let mut sql = QueryBuilder::new("with listed as materialized (select r.id, r.status, (true");
    list.filter.push_to(&mut sql, customer, execution);
    list.push_search(&mut sql, customer, execution);
    sql.push(") as is_listed from test_report r where r.customer_id = ").push_bind(customer);
    sql.push(" and r.execution_id = ").push_bind(execution);
    sql.push("), walked as materialized (select * from listed where is_listed or id = ");
    sql.push_bind(id).push(")");
    let order = if list.by_cause {
        push_causes(&mut sql, customer, execution);
        "place nulls last, fingerprint, id"
    } else {
        "id"
    };
    sql.push(format!(
        " select number, total, reviewed, previous_id, next_id from (
              select id, lag(id) over walk as previous_id, lead(id) over walk as next_id,
                     case when is_listed
                         then (count(*) filter (where is_listed) over walk)::int end as number,
                     (count(*) filter (where is_listed) over ())::int as total,
                     (count(*) filter (where is_listed
                         and status in ('Accepted', 'Rejected', 'Investigation')) over ())::int
                         as reviewed
              from walked {}
              window walk as (order by {order})
          ) as position
          where id = ",
        if list.by_cause { "left join ranked using (id)" } else { "" },
    ));
    sql.push_bind(id);
    let position = sql.build_query_as().fetch_optional(db).await?;
    position.ok_or(Fault::NotFound("test report"))
}

impl Listed {
    /// Adds the condition that a report has the text that is sought.
    fn push_search(
        &self,
        sql: &mut QueryBuilder<Postgres>,
        customer: CustomerId,
        execution: ExecutionId,
    ) {
        let Some(pattern) = &self.pattern else { return };
        if self.by_cause {
            sql.push(" and r.id = any(array(select test_report_id from kept_failure where customer_id = ");
            sql.push_bind(customer).push(" and execution_id = ").push_bind(execution);
            sql.push(
                " and fingerprint in (select fingerprint from kept_failure where customer_id = ",
            );
            sql.push_bind(customer).push(" and execution_id = ").push_bind(execution);
            sql.push(" and headline ilike ").push_bind(pattern.clone()).push(")))");
        } else {
            sql.push(NAMED).push_bind(pattern.clone());
        }
    }
}

/// Ranks the reports by the first of their causes, in the order of the list of causes.
fn push_causes(sql: &mut QueryBuilder<Postgres>, customer: CustomerId, execution: ExecutionId) {
    sql.push(
        ", caused as materialized (
            select distinct fingerprint, test_report_id as id from kept_failure
            where customer_id = ",
    );
    sql.push_bind(customer).push(" and execution_id = ").push_bind(execution).push(
        " and test_report_id in (select id from walked)
        ), ranked as (
            select distinct on (id) id, fingerprint, place from caused
            join (
                select fingerprint,
                       least(row_number() over (order by count(*) desc, fingerprint), ",
    );
    sql.push(LEADING_CAUSES + 1).push(
        ") as place
                from caused group by fingerprint
            ) as cause using (fingerprint)
            order by id, place, fingerprint
        )",
    );
}
