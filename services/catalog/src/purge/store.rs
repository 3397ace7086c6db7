//! The remains of deleted projects, in PostgreSQL. The search for them covers all customers;
//! every other statement is bound to one.

use assay_proto::{
    CustomerId, EnvironmentId, Fault, ProjectId, SubjectId, TestCaseId, TestPlanId, TestSetId,
};
use assay_runtime::begin;
use sqlx::{AssertSqlSafe, FromRow, PgExecutor, PgPool, PgTransaction};
use uuid::Uuid;

use crate::record::Record;

/// The parts of a table, each in the words of an index.
pub(super) const PARTS: [&str; 3] =
    ["live", "archived and deleted_at is null", "deleted_at is not null"];

/// A project that was deleted.
#[derive(Clone, Copy, Debug, FromRow)]
pub(super) struct Project {
    pub(super) customer_id: CustomerId,
    pub(super) id: ProjectId,
    /// Whether others are told of each record. Nobody is left to be told when the customer is gone.
    pub(super) is_announced: bool,
}

/// The tables of projects, in an order in which nothing refers to what is removed.
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

    fn record(self, project: ProjectId, id: Uuid) -> Record {
        match self {
            Self::TestSet => Record::TestSet(project, TestSetId(id)),
            Self::TestCase => Record::TestCase(project, TestCaseId(id)),
            Self::Environment => Record::Environment(project, EnvironmentId(id)),
            Self::Subject => Record::Subject(project, SubjectId(id)),
        }
    }
}

/// Deletes projects that were made while their customer was deleted.
pub(super) async fn delete_late_projects(db: impl PgExecutor<'_>) -> Result<(), Fault> {
    sqlx::query(
        "update project set deleted_at = now()
         from deleted_customer gone
         where project.customer_id = gone.customer_id and project.deleted_at is null
           and gone.deleted_at > now() - interval '1 hour'",
    )
    .execute(db)
    .await?;
    Ok(())
}

/// The project that has been deleted for longest and still has something to be removed.
pub(super) async fn next_project(db: impl PgExecutor<'_>) -> Result<Option<Project>, Fault> {
    let project = sqlx::query_as(
        "select customer_id, id,
                not exists (
                    select from deleted_customer gone
                    where gone.customer_id = project.customer_id
                ) as is_announced
         from project
         where deleted_at is not null and purged_at is null
         order by deleted_at
         limit 1",
    );
    Ok(project.fetch_optional(db).await?)
}

/// The ids of some records of a part of a table, in order.
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

/// Removes what belongs to records, at most `limit` rows of a kind. Returns the records among it,
/// and whether nothing is left. The inner limits have each owner looked up by index, also where there
/// are no statistics.
pub(super) async fn remove_below(
    tx: &mut PgTransaction<'_>,
    project: Project,
    table: Table,
    ids: &[Uuid],
    limit: i64,
) -> Result<(Vec<Record>, bool), Fault> {
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
                 ) gone
                 where test_set_case.customer_id = $1
                   and test_set_case.test_set_id = gone.test_set_id
                   and test_set_case.test_case_id = gone.test_case_id";
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
                announced.map(|(case, plan, _)| Record::TestPlan(case, plan)).collect(),
                is_complete,
            ))
        }
        Table::Environment => Ok((Vec::new(), true)),
        Table::Subject => {
            let built_upon = "update subject set base_subject_id = null
                 where customer_id = $1 and id = any(array(
                     select built.id from unnest($2::uuid[]) as owner (id)
                     cross join lateral (
                         select id from subject
                         where customer_id = $1 and base_subject_id = owner.id
                         limit $3
                     ) built
                     limit $3
                 ))";
            let count = execute(tx, built_upon, customer, ids, limit).await?;
            Ok((Vec::new(), count < limit))
        }
    }
}

/// Removes plans of test cases. Returns them, and whether nobody was told of their deletion yet.
async fn remove_plans(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    cases: &[Uuid],
    limit: i64,
) -> Result<Vec<(TestCaseId, TestPlanId, bool)>, Fault> {
    let plans = sqlx::query_as(
        "delete from test_plan
         where customer_id = $1 and id = any(array(
             select plan.id from unnest($2::uuid[]) as owner (id)
             cross join lateral (
                 select id from test_plan
                 where customer_id = $1 and test_case_id = owner.id
                 limit $3
             ) plan
             limit $3
         ))
         returning test_case_id, id, deleted_at is null",
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

/// Removes records that nothing belongs to any more, with the favorites that they were. Returns those
/// of whose deletion nobody was told yet.
pub(super) async fn remove(
    tx: &mut PgTransaction<'_>,
    project: Project,
    table: Table,
    ids: &[Uuid],
) -> Result<Vec<Record>, Fault> {
    let customer = project.customer_id;
    sqlx::query("delete from favorite where customer_id = $1 and record_id = any($2)")
        .bind(customer)
        .bind(ids)
        .execute(&mut **tx)
        .await?;
    let removed = sqlx::query_as::<_, (Uuid, bool)>(AssertSqlSafe(format!(
        "delete from {} where customer_id = $1 and id = any($2) returning id, deleted_at is null",
        table.name()
    )));
    let removed = removed.bind(customer).bind(ids).fetch_all(&mut **tx).await?;
    let announced = removed.into_iter().filter(|(_, is_new)| *is_new);
    Ok(announced.map(|(id, _)| table.record(project.id, id)).collect())
}

/// Notes that nothing is left of a project but that it was there. Of a deleted customer, what its
/// users had at hand goes as well.
pub(super) async fn finish(db: &PgPool, project: Project) -> Result<(), Fault> {
    let mut tx = begin(db).await?;
    for statement in [
        "delete from opening where customer_id = $1 and (owner_id = $2 or record_id = $2)",
        "delete from favorite where customer_id = $1 and record_id = $2",
        "update project
         set purged_at = now(), name = '', description = '', report_template_id = null
         where customer_id = $1 and id = $2",
    ] {
        sqlx::query(statement).bind(project.customer_id).bind(project.id).execute(&mut *tx).await?;
    }
    Ok(tx.commit().await?)
}
