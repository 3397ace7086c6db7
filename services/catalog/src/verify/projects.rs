//! Projects, and deleted test cases and test sets, for the comparison with what the execution service has of them.

use assay_events::KnownDeletion;
use assay_proto::{CustomerId, Fault, ProjectId};
use sqlx::{AssertSqlSafe, PgPool};
use uuid::Uuid;

/// Returns those of some projects that the catalog has or has deleted, with whether it has deleted them.
pub async fn find_projects(
    db: &PgPool,
    projects: &[(CustomerId, ProjectId)],
) -> Result<Vec<(CustomerId, ProjectId, bool)>, Fault> {
    let (customers, ids): (Vec<_>, Vec<_>) = projects.iter().copied().unzip();
    let found = sqlx::query_as(
        "select customer_id, id, deleted_at is not null from project
         where (customer_id, id) in (select * from unnest($1::uuid[], $2::uuid[]))",
    );
    Ok(found.bind(customers).bind(ids).fetch_all(db).await?)
}

/// Lists up to 1,000 deleted test cases and test sets of projects that were not deleted, after another one.
pub async fn deletions(
    db: &PgPool,
    after: Option<(CustomerId, ProjectId, Uuid)>,
) -> Result<Vec<KnownDeletion>, Fault> {
    let nil = (CustomerId(Uuid::nil()), ProjectId(Uuid::nil()), Uuid::nil());
    let (customer, project, id) = after.unwrap_or(nil);
    // Each has an index of its deleted rows in this order.
    let of = |noun: &str, table: &str| {
        format!(
            "(select customer_id, project_id, '{noun}' as noun, id from {table} r
              where deleted_at is not null and (customer_id, project_id, id) > ($1, $2, $3)
                and exists (
                    select from project p
                    where p.customer_id = r.customer_id and p.id = r.project_id
                      and p.deleted_at is null
                )
              order by customer_id, project_id, id
              limit 1000)"
        )
    };
    let deletions = sqlx::query_as(AssertSqlSafe(format!(
        "{} union all {} order by customer_id, project_id, id limit 1000",
        of("test case", "test_case"),
        of("test set", "test_set")
    )));
    Ok(deletions.bind(customer).bind(project).bind(id).fetch_all(db).await?)
}

/// Returns those of some deleted test cases and test sets that the catalog has, with their nouns.
pub async fn find_restored(
    db: &PgPool,
    deleted: &[(CustomerId, ProjectId, Uuid)],
) -> Result<Vec<(String, Uuid)>, Fault> {
    let restored = sqlx::query_as(
        "with deleted as (
             select customer_id, id from unnest($1::uuid[], $2::uuid[]) as deleted (customer_id, id)
         )
         select 'test case', r.id from deleted
         join test_case r on r.customer_id = deleted.customer_id and r.id = deleted.id
         where r.deleted_at is null
         union all
         select 'test set', r.id from deleted
         join test_set r on r.customer_id = deleted.customer_id and r.id = deleted.id
         where r.deleted_at is null
         order by 1, 2",
    );
    let restored = restored
        .bind(deleted.iter().map(|(customer, ..)| *customer).collect::<Vec<_>>())
        .bind(deleted.iter().map(|(.., id)| *id).collect::<Vec<_>>());
    Ok(restored.fetch_all(db).await?)
}
