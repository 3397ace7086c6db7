//! Re-encryption of the secrets of pools, so that an old encryption key can be removed.

use assay_auth::{Seal, SealConfig};
use assay_database::command_options;
use assay_proto::{CustomerId, PoolId, ProjectId, execution::PoolValue};
use secrecy::SecretString;
use sqlx::{Connection, PgConnection, types::Json};

use super::contents::Contents;

/// Re-encrypts the secrets of all pools with the first encryption key, and returns the number of pools that had
/// another one. Programs may keep running if they already have that key.
pub async fn reseal(database_url: &SecretString, seal: &SealConfig) -> anyhow::Result<u64> {
    let seal = Seal::new(seal)?;
    let mut db = PgConnection::connect_with(&command_options(database_url)?).await?;
    let pools: Vec<(CustomerId, ProjectId, PoolId)> =
        sqlx::query_as("select customer_id, project_id, id from pool").fetch_all(&mut db).await?;
    let mut count = 0;
    for (customer, project, pool) in pools {
        let mut tx = db.begin().await?;
        let stored: Option<Json<Vec<PoolValue>>> = sqlx::query_scalar(
            "select values from pool where customer_id = $1 and project_id = $2 and id = $3
             for no key update",
        )
        .bind(customer)
        .bind(project)
        .bind(pool)
        .fetch_optional(&mut *tx)
        .await?;
        let Some(Json(mut values)) = stored else { continue };
        if !(Contents { seal: &seal, pool }).reseal(&mut values)? {
            continue;
        }
        sqlx::query(
            "update pool set values = $4 where customer_id = $1 and project_id = $2 and id = $3",
        )
        .bind(customer)
        .bind(project)
        .bind(pool)
        .bind(Json(values))
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        count += 1;
    }
    Ok(count)
}
