//! Projects, test cases and test sets, compared with what the catalog has of them.

use assay_database::begin;
use assay_events::{KnownDeletion, KnownRetention};
use assay_ledger::deletion::{records, store::ALL_PROJECTS};
use assay_proto::{CustomerId, Fault, ProjectId};
use sqlx::{PgPool, PgTransaction};
use uuid::Uuid;

/// Returns those of some projects that this service has deleted, although the catalog has them. Those of deleted
/// customers are left out.
pub async fn deleted_projects(
    db: &PgPool,
    known: &[KnownRetention],
) -> Result<Vec<ProjectId>, Fault> {
    let deleted = sqlx::query_scalar(
        "select project_id from deletion
         where (customer_id, project_id) in (select * from unnest($1::uuid[], $2::uuid[]))
           and not exists (
               select from deletion d
               where d.customer_id = deletion.customer_id and d.project_id = $3
           )
         order by project_id",
    );
    let deleted = deleted
        .bind(known.iter().map(|one| one.customer).collect::<Vec<_>>())
        .bind(known.iter().map(|one| one.project).collect::<Vec<_>>())
        .bind(ALL_PROJECTS);
    Ok(deleted.fetch_all(db).await?)
}

/// Lists up to 1,000 test cases and test sets of which this service knows that they were deleted, after another one.
/// Those of deleted projects are left out.
pub async fn deleted_records(
    db: &PgPool,
    after: Option<(CustomerId, ProjectId, Uuid)>,
) -> Result<Vec<(CustomerId, ProjectId, Uuid)>, Fault> {
    let (customer, project, id) =
        after.unwrap_or((CustomerId(Uuid::nil()), ALL_PROJECTS, Uuid::nil()));
    let deleted = sqlx::query_as(
        "select customer_id, project_id, id from deleted_record r
         where (customer_id, project_id, id) > ($1, $2, $3) and not exists (
             select from deletion d
             where d.customer_id = r.customer_id and d.project_id in (r.project_id, $4)
         )
         order by customer_id, project_id, id
         limit 1000",
    );
    let deleted = deleted.bind(customer).bind(project).bind(id).bind(ALL_PROJECTS);
    Ok(deleted.fetch_all(db).await?)
}

/// Describes the test cases and test sets that the catalog has deleted, but that this service still shows. Deletes them
/// here, too, if asked for.
pub async fn compare_deletions(
    db: &PgPool,
    known: &[KnownDeletion],
    repairs: bool,
) -> Result<Vec<String>, Fault> {
    let mut tx = begin(db).await?;
    let shown = shown(&mut tx, known).await?;
    if repairs {
        for of_customer in shown.chunk_by(|one, next| one.customer_id == next.customer_id) {
            let deleted: Vec<_> = of_customer.iter().map(|one| (one.project_id, one.id)).collect();
            records::insert(&mut tx, of_customer[0].customer_id, &deleted).await?;
        }
    }
    tx.commit().await?;
    let describe = |one: &KnownDeletion| {
        let KnownDeletion { noun, id, .. } = one;
        format!("{noun} {id}: the catalog has deleted it, but insights, grids and metrics show it")
    };
    Ok(shown.iter().map(describe).collect())
}

/// Returns those of some deleted test cases and test sets that are not deleted here, in the order of their customers.
async fn shown(
    tx: &mut PgTransaction<'_>,
    known: &[KnownDeletion],
) -> Result<Vec<KnownDeletion>, Fault> {
    let shown = sqlx::query_as(
        "select known.customer_id, known.project_id, known.noun, known.id
         from unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[])
             as known (customer_id, project_id, noun, id)
         where not exists (
                 select from deleted_record r
                 where r.customer_id = known.customer_id and r.project_id = known.project_id
                   and r.id = known.id
             )
           and not exists (
                 select from deletion d
                 where d.customer_id = known.customer_id and d.project_id in (known.project_id, $5)
             )
         order by known.customer_id, known.project_id, known.id",
    );
    let shown = shown
        .bind(known.iter().map(|one| one.customer_id).collect::<Vec<_>>())
        .bind(known.iter().map(|one| one.project_id).collect::<Vec<_>>())
        .bind(known.iter().map(|one| one.noun.as_str()).collect::<Vec<_>>())
        .bind(known.iter().map(|one| one.id).collect::<Vec<_>>())
        .bind(ALL_PROJECTS);
    Ok(shown.fetch_all(&mut **tx).await?)
}
