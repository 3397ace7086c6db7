//! The customers, users and groups that this service has, for the comparison with what others have of them.

use assay_events::{KnownCustomer, KnownMember};
use assay_proto::{CustomerId, Fault};
use assay_records::appliances::{self, Appliances};
use sqlx::{AssertSqlSafe, FromRow, PgPool};

#[derive(FromRow)]
struct Row {
    id: CustomerId,
    archived: bool,
    is_deleted: bool,
    appliances: Option<String>,
    revision: i64,
}

impl From<Row> for KnownCustomer {
    fn from(row: Row) -> Self {
        let appliances = Appliances {
            customer_id: row.id,
            target_groups: appliances::parse(row.appliances.as_deref().unwrap_or_default()),
            revision: row.revision,
        };
        Self { is_archived: row.archived, is_deleted: row.is_deleted, appliances }
    }
}

/// Returns the statement that reads the customers which a condition selects, deleted ones included.
fn select(condition: &str) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!(
        "select id, archived, deleted_at is not null as is_deleted, appliances, revision
         from customer where {condition}"
    ))
}

/// Lists up to 100 customers after another one, deleted ones included.
pub async fn customers(
    db: &PgPool,
    after: Option<CustomerId>,
) -> Result<Vec<KnownCustomer>, Fault> {
    let customers = sqlx::query_as(select(
        "id > coalesce($1, '00000000-0000-0000-0000-000000000000') order by id limit 100",
    ));
    let rows: Vec<Row> = customers.bind(after).fetch_all(db).await?;
    Ok(rows.into_iter().map(KnownCustomer::from).collect())
}

/// Returns those of some customers that this service has or has deleted.
pub async fn find_customers(db: &PgPool, ids: &[CustomerId]) -> Result<Vec<KnownCustomer>, Fault> {
    let rows: Vec<Row> = sqlx::query_as(select("id = any($1)")).bind(ids).fetch_all(db).await?;
    Ok(rows.into_iter().map(KnownCustomer::from).collect())
}

/// Describes the users and groups that this service lacks although they were created, or has although they were
/// deleted, as after the restore of a backup. Those of customers that it lacks are left out. A deleted group keeps its
/// row, and the notification of its deletion may not have arrived yet.
pub async fn compare_members(db: &PgPool, known: &[KnownMember]) -> Result<Vec<String>, Fault> {
    let compared = sqlx::query_scalar(
        "select format('%s %s of customer %s: ', known.noun, known.id, known.customer_id)
             || case when known.is_deleted
                then 'was deleted, but identity has it again: delete it again'
                else 'was created, but identity lacks it: restore a later backup of identity, or '
                     || 'create another one; this is reported as long as the notification is kept' end
         from unnest($1::uuid[], $2::text[], $3::uuid[], $4::bool[])
             as known (customer_id, noun, id, is_deleted)
         join customer c on c.id = known.customer_id and c.deleted_at is null
         left join membership m on m.customer_id = known.customer_id and m.id = known.id
         left join user_group g on g.customer_id = known.customer_id and g.id = known.id
         where case when known.is_deleted
               then m.id is not null or g.id is not null and g.deleted_at is null
               else m.id is null and g.id is null end
         order by known.customer_id, known.noun, known.id",
    );
    let compared = compared
        .bind(known.iter().map(|one| one.customer_id).collect::<Vec<_>>())
        .bind(known.iter().map(|one| one.noun.as_str()).collect::<Vec<_>>())
        .bind(known.iter().map(|one| one.id).collect::<Vec<_>>())
        .bind(known.iter().map(|one| one.is_deleted).collect::<Vec<_>>());
    Ok(compared.fetch_all(db).await?)
}
