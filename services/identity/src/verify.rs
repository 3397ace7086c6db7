//! The customers that this service has, for the comparison with what others have of them.

use assay_events::KnownCustomer;
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
