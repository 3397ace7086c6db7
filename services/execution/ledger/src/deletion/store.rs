//! Deleted projects and customers in PostgreSQL. The purge reads those of all customers.

use std::time::Duration;

use assay_proto::{CustomerId, ExecutionId, Fault, ProjectId, TestReportId, Timestamp};
use assay_work::{Patience, Queue, Work};
use sqlx::{AssertSqlSafe, FromRow, PgExecutor, PgTransaction};
use uuid::Uuid;

/// Removing the executions of a deleted project or customer. If it is dropped, the rest of them stays, and
/// is not shown.
pub const PURGE: Work = Work {
    kind: "purge",
    queue: Queue::Unfinished {
        patience: Patience::of_purges(Duration::from_secs(5)),
        pending: "exists (
            select from deletion d
            where d.customer_id = w.customer_id and d.purged_at is null
              and w.id = case when d.project_id = '00000000-0000-0000-0000-000000000000'
                  then d.customer_id else d.project_id end
        )",
        drop: "update deletion d set purged_at = now()
               from unnest($1::uuid[], $2::uuid[]) as dropped (customer_id, id)
               where d.customer_id = dropped.customer_id
                 and dropped.id = case when d.project_id = '00000000-0000-0000-0000-000000000000'
                     then d.customer_id else d.project_id end",
    },
};

/// The project id of a deleted customer.
pub const ALL_PROJECTS: ProjectId = ProjectId(Uuid::nil());

/// A deleted project or customer.
#[derive(Clone, Copy, Debug, FromRow)]
pub struct Deleted {
    pub customer_id: CustomerId,
    pub project_id: ProjectId,
}

impl Deleted {
    /// Returns the id of the purge: that of the project, or of the customer if all projects are deleted.
    pub fn work_id(self) -> Uuid {
        if self.project_id == ALL_PROJECTS { self.customer_id.0 } else { self.project_id.0 }
    }
}

/// Inserts a deletion, and deletes what users have set for its projects.
pub async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
) -> Result<(), Fault> {
    sqlx::query(
        "insert into deletion (customer_id, project_id) values ($1, $2)
         on conflict on constraint deletion_pkey do nothing",
    )
    .bind(customer)
    .bind(project)
    .execute(&mut **tx)
    .await?;
    remove_settings(tx, customer, project).await
}

/// Settings of projects that several transactions lock, in the order in which they do (see `docs/design/results.md`), and
/// the order of their rows.
const LOCKED: [(&str, &str); 5] = [
    ("monitor", "id"),
    ("cause_rule", "id"),
    ("changed_causes", "project_id"),
    ("known_failure", "project_id, fingerprint, test_case_id"),
    ("test_case_state", "project_id, test_case_id"),
];

/// Settings of projects that have no order.
const OTHERS: [&str; 2] = ["retention", "pool"];

/// Deletes the retention times, the known failures, the rules for causes, the states of test cases, the
/// monitors and the pools of a deleted project, or of all projects of a customer. Transactions that have begun
/// before the deletion may add some after it.
pub async fn remove_settings(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
) -> Result<(), Fault> {
    let of_project = "where customer_id = $1 and $2 in (project_id, $3)";
    let locks = LOCKED.map(|(table, order)| {
        format!("select from {table} {of_project} order by {order} for update")
    });
    let tables = LOCKED.map(|(table, _)| table).into_iter().chain(OTHERS);
    let deletions = tables.map(|table| format!("delete from {table} {of_project}"));
    for statement in locks.into_iter().chain(deletions) {
        let statement = sqlx::query(AssertSqlSafe(statement));
        let statement = statement.bind(customer).bind(project).bind(ALL_PROJECTS);
        statement.execute(&mut **tx).await?;
    }
    Ok(())
}

/// Notes whether a customer is archived, unless a later event has done so.
pub async fn set_state(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    is_archived: bool,
    at: Timestamp,
) -> Result<(), Fault> {
    let set = sqlx::query(
        "insert into customer_state as s (customer_id, is_archived, changed_at) values ($1, $2, $3)
         on conflict on constraint customer_state_pkey do update
         set is_archived = excluded.is_archived, changed_at = excluded.changed_at
         where s.changed_at <= excluded.changed_at",
    );
    set.bind(customer).bind(is_archived).bind(at).execute(&mut **tx).await?;
    Ok(())
}

/// Deletes the state of a deleted customer, whose share links are removed.
pub async fn remove_state(db: impl PgExecutor<'_>, customer: CustomerId) -> Result<(), Fault> {
    let remove = sqlx::query("delete from customer_state where customer_id = $1");
    remove.bind(customer).execute(db).await?;
    Ok(())
}

/// Whether a project or its customer was deleted.
pub async fn is_deleted(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
) -> Result<bool, Fault> {
    let deleted = sqlx::query_scalar(
        "select exists (
             select from deletion where customer_id = $1 and project_id in ($2, $3)
         )",
    );
    Ok(deleted.bind(customer).bind(project).bind(ALL_PROJECTS).fetch_one(db).await?)
}

/// Returns the first unfinished deletion after another one, of those that are to be purged now.
pub async fn next(
    db: impl PgExecutor<'_>,
    after: Option<Deleted>,
) -> Result<Option<Deleted>, Fault> {
    let (customer, project) =
        after.map_or((Uuid::nil(), Uuid::nil()), |after| (after.customer_id.0, after.project_id.0));
    let id = "case when project_id = $3 then deletion.customer_id else project_id end";
    let next = sqlx::query_as(AssertSqlSafe(format!(
        "select customer_id, project_id from deletion
         where purged_at is null and (customer_id, project_id) > ($1, $2) and {}
         order by customer_id, project_id
         limit 1",
        PURGE.is_due("deletion.customer_id", id)
    )));
    Ok(next.bind(customer).bind(project).bind(ALL_PROJECTS).fetch_optional(db).await?)
}

/// Lists up to 100 executions of a deletion, in the order of their ids, after one of them.
pub async fn executions(
    db: impl PgExecutor<'_>,
    of: Deleted,
    after: ExecutionId,
) -> Result<Vec<ExecutionId>, Fault> {
    let statement = if of.project_id == ALL_PROJECTS {
        "select id from execution where customer_id = $1 and $2::uuid is not null and id > $3
         order by id
         limit 100"
    } else {
        // Archived executions have an index of their own.
        "(select id from execution
          where customer_id = $1 and project_id = $2 and id > $3 and not archived
          order by id
          limit 100)
         union all
         (select id from execution
          where customer_id = $1 and project_id = $2 and id > $3 and archived
          order by id
          limit 100)
         order by id
         limit 100"
    };
    let executions = sqlx::query_scalar(statement);
    Ok(executions.bind(of.customer_id).bind(of.project_id).bind(after).fetch_all(db).await?)
}

/// Whether no transaction has locked an execution. Later transactions find it deleted.
pub async fn is_unlocked(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<bool, Fault> {
    let locked = sqlx::query_scalar(
        "select true from execution where customer_id = $1 and id = $2 for update skip locked",
    );
    let locked: Option<bool> = locked.bind(customer).bind(id).fetch_optional(db).await?;
    Ok(locked.is_some())
}

/// Lists reports of an execution, with the number of instances of each.
pub async fn reports(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    limit: i64,
) -> Result<Vec<(TestReportId, i32)>, Fault> {
    let reports = sqlx::query_as(
        "select id, finished_instances_count from test_report
         where customer_id = $1 and execution_id = $2
         order by id
         limit $3",
    );
    Ok(reports.bind(customer).bind(execution).bind(limit).fetch_all(db).await?)
}

/// Statements that delete reports, after the rows that refer to them. Each is bound to a customer
/// and the ids of the reports.
pub const REPORTS: [&str; 9] = [
    "delete from live_log_chunk where customer_id = $1 and lease_id = any(array(
         select lease_id from live_log where customer_id = $1 and test_report_id = any($2)
     ))",
    "delete from live_log where customer_id = $1 and test_report_id = any($2)",
    "delete from occupied_environment where customer_id = $1 and lease_id = any(array(
         select l.id from schedule s
         join lease l on l.customer_id = $1 and l.schedule_id = s.id
         where s.customer_id = $1 and s.test_report_id = any($2)
     ))",
    "delete from used_value where customer_id = $1 and lease_id = any(array(
         select l.id from schedule s
         join lease l on l.customer_id = $1 and l.schedule_id = s.id
         where s.customer_id = $1 and s.test_report_id = any($2)
     ))",
    "delete from lease where customer_id = $1 and schedule_id = any(array(
         select id from schedule where customer_id = $1 and test_report_id = any($2)
     ))",
    "delete from schedule where customer_id = $1 and test_report_id = any($2)",
    "delete from test_case_counter where customer_id = $1 and test_case_id = any(array(
         select test_case_id from test_report where customer_id = $1 and id = any($2)
     ))",
    "delete from case_day d
     using test_report r, execution e
     where r.customer_id = $1 and r.id = any($2)
       and e.customer_id = $1 and e.id = r.execution_id
       and d.customer_id = $1 and d.project_id = e.project_id and d.test_case_id = r.test_case_id",
    "delete from test_report where customer_id = $1 and id = any($2)",
];

/// Deletes an execution that has no reports any more, with what belongs to it.
pub async fn remove_execution(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<(), Fault> {
    let remove = sqlx::query(
        "with reporters as (delete from reporter where customer_id = $1 and execution_id = $2),
              share_links as (delete from share_link where customer_id = $1 and execution_id = $2),
              incidents as (
                  delete from incident where customer_id = $1 and id = any(array(
                      select i.id from incident i
                      join incident_execution a on a.customer_id = $1 and a.incident_id = i.id
                      where i.customer_id = $1 and a.execution_id = $2
                      order by i.id
                      for update of i
                  ))
              ),
              searches as (
                  delete from incident_search where customer_id = $1 and execution_id = $2
              ),
              uploads as (delete from upload where customer_id = $1 and execution_id = $2),
              tags as (delete from execution_tag where customer_id = $1 and execution_id = $2)
         delete from execution where customer_id = $1 and id = $2",
    );
    remove.bind(customer).bind(id).execute(db).await?;
    Ok(())
}

/// Marks a deletion as finished, unless transactions that began before it may still be running. Returns whether
/// it is.
pub async fn mark_purged(db: impl PgExecutor<'_>, of: Deleted) -> Result<bool, Fault> {
    let marked = sqlx::query(
        "update deletion set purged_at = now()
         where customer_id = $1 and project_id = $2 and purged_at is null
           and deleted_at < now() - interval '10 minutes'",
    )
    .bind(of.customer_id)
    .bind(of.project_id)
    .execute(db)
    .await?;
    Ok(marked.rows_affected() > 0)
}
