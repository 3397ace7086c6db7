//! The sums of execution times, in PostgreSQL.

use assay_proto::{
    CustomerId, Fault, ProjectId,
    execution::{ExecutionTime, MonthlyExecutionTime},
};
use assay_records::Month;
use assay_rpc::list::{Rows, Slice};
use sqlx::PgExecutor;
use uuid::Uuid;

/// Returns the current month.
pub(in crate::execution_time) async fn current_month(
    db: impl PgExecutor<'_>,
) -> Result<Month, Fault> {
    let month = sqlx::query_scalar("select to_char(now() at time zone 'utc', 'YYYY-MM')");
    let month: String = month.fetch_one(db).await?;
    Month::parse(&month).ok_or_else(|| Fault::internal(format!("not a valid month: {month}")))
}

/// Lists the sums of some months, the latest first. A sum has an id that follows from what it is of.
pub(in crate::execution_time) async fn list(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    (from, to): (Month, Month),
    project: Option<ProjectId>,
    slice: &Slice,
) -> Result<Rows<ExecutionTime>, Fault> {
    let after: Option<Uuid> = slice.after.is_some().then(|| slice.before()).transpose()?;
    let sums = sqlx::query_as(
        "with total as materialized (
             select md5(concat_ws(' ', month, project_id, test_set_id, target_group))::uuid as id,
                    month, project_id, test_set_id, target_group, count(*) as executions,
                    sum(instances)::bigint as instances, sum(duration_in_sec) as duration_in_sec
             from execution_time
             where customer_id = $1 and month between $2::date and $3::date
               and ($4::uuid is null or project_id = $4)
             group by month, project_id, test_set_id, target_group
         ),
         named as (
             select total.*, (
                 select e.test_set_name from live_execution e
                 where e.customer_id = $1 and e.test_set_id = total.test_set_id
                 order by e.id desc
                 limit 1
             ) as test_set_name
             from total
         )
         select id, to_char(month, 'YYYY-MM') as month, $1 as customer_id, project_id, test_set_id,
                test_set_name, target_group, executions, instances,
                duration_in_sec / 3600 as duration_in_h
         from named
         where ($5::uuid is null or (named.month, named.id) < (
                    select total.month, total.id from total where total.id = $5
                ))
           and ($6::text is null or test_set_name ilike $6)
         order by named.month desc, named.id desc
         limit $7",
    );
    let sums: Vec<ExecutionTime> = sums
        .bind(customer)
        .bind(from.first_day())
        .bind(to.first_day())
        .bind(project)
        .bind(after)
        .bind(&slice.pattern)
        .bind(slice.limit)
        .fetch_all(db)
        .await?;
    Ok(sums.into())
}

/// Returns the sum of a month. The executions that wait to be counted have an index of their own.
pub(in crate::execution_time) async fn of_month(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    month: Month,
) -> Result<MonthlyExecutionTime, Fault> {
    let sum = sqlx::query_as(
        "select count(*) as executions, coalesce(sum(instances), 0)::bigint as instances,
                coalesce(sum(duration_in_sec), 0) / 3600 as duration_in_h,
                exists (
                    select from execution
                    where status in ('Completed', 'Canceled') and timed_at is null
                      and customer_id = $1 and past_end is null
                      and completion_date_time >= $2::date::timestamp at time zone 'utc'
                      and completion_date_time < ($2::date + interval '1 month') at time zone 'utc'
                ) as is_partial
         from execution_time
         where customer_id = $1 and month = $2::date",
    );
    Ok(sum.bind(customer).bind(month.first_day()).fetch_one(db).await?)
}
