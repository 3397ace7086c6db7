//! The records of deleted projects in PostgreSQL. The search for projects covers all customers; every
//! other statement is bound to one.

use std::time::Duration;

use assay_database::begin;
use assay_proto::{
    CustomerId, EnvironmentId, Fault, ProjectId, SubjectId, TestCaseId, TestPlanId, TestSetId,
};
use assay_work::{Patience, Queue, Work};
use sqlx::{AssertSqlSafe, FromRow, PgExecutor, PgPool, PgTransaction};
use uuid::Uuid;

use crate::event::EventSource;

/// Removing the records of a deleted project. If it is dropped, the rest of them stays, and is not shown.
pub(crate) const PURGE: Work = Work {
    kind: "purge",
    queue: Queue::Unfinished {
        patience: Patience::of_purges(Duration::from_secs(1)),
        pending: "exists (
            select from project p
            where p.customer_id = w.customer_id and p.id = w.id and p.purged_at is null
        )",
        drop: "update project set purged_at = now()
               where (customer_id, id) in (select * from unnest($1::uuid[], $2::uuid[]))",
    },
};

/// The parts of a table, as conditions in the words of its indexes.
pub(super) const PARTS: [&str; 3] =
    ["live", "archived and deleted_at is null", "deleted_at is not null"];

/// A deleted project.
#[derive(Clone, Copy, Debug, FromRow)]
pub(super) struct Project {
    pub(super) customer_id: CustomerId,
    pub(super) id: ProjectId,
    /// Whether the deletion of each record is published. It is not if the customer was deleted, too.
    pub(super) is_announced: bool,
}

/// The tables of records, in an order in which no row refers to a removed one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Table {
    TestSet,
    TestCase,
    Environment,
    Subject,
}

impl Table {
    pub(super) const ALL: [Self; 4] =
        [Self::TestSet, Self::TestCase, Self::Environment, Self::Subject];

    fn name(self) -> &'static str {
        match self {
            Self::TestSet => "test_set",
            Self::TestCase => "test_case",
            Self::Environment => "environment",
            Self::Subject => "subject",
        }
    }

    fn source(self, project: ProjectId, id: Uuid) -> EventSource {
        match self {
            Self::TestSet => EventSource::TestSet(project, TestSetId(id)),
            Self::TestCase => EventSource::TestCase(project, TestCaseId(id)),
            Self::Environment => EventSource::Environment(project, EnvironmentId(id)),
            Self::Subject => EventSource::Subject(project, SubjectId(id)),
        }
    }
}

/// Deletes projects that were created while their customer was deleted.
pub(super) async fn delete_late_projects(db: impl PgExecutor<'_>) -> Result<(), Fault> {
    sqlx::query(
        "update project set deleted_at = now()
         from deleted_customer deleted
         where project.customer_id = deleted.customer_id and project.deleted_at is null
           and deleted.deleted_at > now() - interval '1 hour'",
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Returns the project that was deleted first, has not been purged, and is not to be purged later.
pub(super) async fn next_project(db: impl PgExecutor<'_>) -> Result<Option<Project>, Fault> {
    let project = sqlx::query_as(AssertSqlSafe(format!(
        "select customer_id, id,
                not exists (
                    select from deleted_customer deleted
                    where deleted.customer_id = project.customer_id
                ) as is_announced
         from project
         where deleted_at is not null and purged_at is null and {}
         order by deleted_at
         limit 1",
        PURGE.is_due("project.customer_id", "project.id")
    )));
    Ok(project.fetch_optional(db).await?)
}

/// Returns the ids of the first records of a part of a table after `after`.
pub(super) async fn ids(
    db: impl PgExecutor<'_>,
    project: Project,
    table: Table,
    part: &'static str,
    after: Uuid,
    limit: i64,
) -> Result<Vec<Uuid>, Fault> {
    let table = table.name();
    let ids = sqlx::query_scalar(AssertSqlSafe(format!(
        "select id from {table}
         where customer_id = $1 and project_id = $2 and id > $3 and {part}
         order by id
         limit $4"
    )));
    let ids = ids.bind(project.customer_id).bind(project.id).bind(after).bind(limit);
    Ok(ids.fetch_all(db).await?)
}

/// Removes rows that belong to records, at most `limit` from each table. Returns the removed records
/// whose deletion is to be published, and whether no rows are left. Because of the inner limits,
/// PostgreSQL looks up each owner by index even without statistics.
pub(super) async fn remove_below(
    tx: &mut PgTransaction<'_>,
    project: Project,
    table: Table,
    ids: &[Uuid],
    limit: i64,
) -> Result<(Vec<EventSource>, bool), Fault> {
    let customer = project.customer_id;
    match table {
        Table::TestSet => {
            let members = "delete from test_set_case
                 using (
                     select member.test_set_id, member.test_case_id
                     from unnest($2::uuid[]) as owner (id)
                     cross join lateral (
                         select test_set_id, test_case_id from test_set_case
                         where customer_id = $1 and test_set_id = owner.id
                         limit $3
                     ) member
                     limit $3
                 ) removed
                 where test_set_case.customer_id = $1
                   and test_set_case.test_set_id = removed.test_set_id
                   and test_set_case.test_case_id = removed.test_case_id";
            let count = execute(tx, members, customer, ids, limit).await?;
            Ok((Vec::new(), count < limit))
        }
        Table::TestCase => {
            let plans = remove_plans(tx, customer, ids, limit).await?;
            let reports = "delete from test_report
                 where customer_id = $1 and id = any(array(
                     select report.id from unnest($2::uuid[]) as owner (id)
                     cross join lateral (
                         select id from test_report
                         where customer_id = $1 and test_case_id = owner.id
                         limit $3
                     ) report
                     limit $3
                 ))";
            let count = execute(tx, reports, customer, ids, limit).await?;
            let is_complete = count < limit && i64::try_from(plans.len()).is_ok_and(|n| n < limit);
            let announced = plans.into_iter().filter(|(.., is_new)| *is_new);
            Ok((
                announced
                    .map(|(case, plan, _)| EventSource::TestPlan(Some(project.id), case, plan))
                    .collect(),
                is_complete,
            ))
        }
        Table::Environment => Ok((Vec::new(), true)),
        Table::Subject => {
            let based_on = "update subject set base_subject_id = null
                 where customer_id = $1 and id = any(array(
                     select based.id from unnest($2::uuid[]) as owner (id)
                     cross join lateral (
                         select id from subject
                         where customer_id = $1 and base_subject_id = owner.id
                         limit $3
                     ) based
                     limit $3
                 ))";
            let count = execute(tx, based_on, customer, ids, limit).await?;
            Ok((Vec::new(), count < limit))
        }
    }
}

/// Removes plans of test cases. Returns them, and whether their deletion is to be published.
async fn remove_plans(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    cases: &[Uuid],
    limit: i64,
) -> Result<Vec<(TestCaseId, TestPlanId, bool)>, Fault> {
    let plans = sqlx::query_as(
        "with plan as (
             delete from test_plan
             where customer_id = $1 and id = any(array(
                 select plan.id from unnest($2::uuid[]) as owner (id)
                 cross join lateral (
                     select id from test_plan
                     where customer_id = $1 and test_case_id = owner.id
                     limit $3
                 ) plan
                 limit $3
             ))
             returning test_case_id, id, deleted_at is null as is_new
         ), released as (
             delete from file_reference
             where customer_id = $1 and record_id = any(array(select id from plan))
         )
         select test_case_id, id, is_new from plan",
    );
    Ok(plans.bind(customer).bind(cases).bind(limit).fetch_all(&mut **tx).await?)
}

async fn execute(
    tx: &mut PgTransaction<'_>,
    statement: &'static str,
    customer: CustomerId,
    ids: &[Uuid],
    limit: i64,
) -> Result<i64, Fault> {
    let done = sqlx::query(statement).bind(customer).bind(ids).bind(limit);
    let count = done.execute(&mut **tx).await?.rows_affected();
    i64::try_from(count).map_err(Fault::internal)
}

/// Removes records that no other rows belong to, with favorites that refer to them and their references to
/// files. Returns those whose
/// deletion is to be published.
pub(super) async fn remove(
    tx: &mut PgTransaction<'_>,
    project: Project,
    table: Table,
    ids: &[Uuid],
) -> Result<Vec<EventSource>, Fault> {
    let customer = project.customer_id;
    for references in [
        "delete from favorite where customer_id = $1 and record_id = any($2)",
        "delete from file_reference where customer_id = $1 and record_id = any($2)",
    ] {
        sqlx::query(references).bind(customer).bind(ids).execute(&mut **tx).await?;
    }
    let removed = sqlx::query_as::<_, (Uuid, bool)>(AssertSqlSafe(format!(
        "delete from {} where customer_id = $1 and id = any($2) returning id, deleted_at is null",
        table.name()
    )));
    let removed = removed.bind(customer).bind(ids).fetch_all(&mut **tx).await?;
    let announced = removed.into_iter().filter(|(_, is_new)| *is_new);
    Ok(announced.map(|(id, _)| table.source(project.id, id)).collect())
}

/// Clears the row of a purged project, and removes the favorites and openings of the project.
pub(super) async fn finish(db: &PgPool, project: Project) -> Result<(), Fault> {
    let mut tx = begin(db).await?;
    for statement in [
        "delete from opening where customer_id = $1 and owner_id = $2",
        "delete from favorite where customer_id = $1 and record_id = $2",
        "update project
         set purged_at = now(), name = '', description = '', report_template_id = null,
             default_branch = default, ticket_url = default
         where customer_id = $1 and id = $2",
    ] {
        sqlx::query(statement).bind(project.customer_id).bind(project.id).execute(&mut *tx).await?;
    }
    Ok(tx.commit().await?)
}
