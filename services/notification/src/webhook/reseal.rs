//! Re-encryption of secrets, so that an old encryption key can be removed.

use assay_auth::{Seal, SealConfig};
use assay_database::command_options;
use assay_proto::WebhookId;
use secrecy::SecretString;
use sqlx::{Connection, PgConnection};

use crate::secret;

/// Re-encrypts the secrets of all webhooks with the first encryption key, and returns the number of
/// webhooks that had another one. Programs may keep running if they already have that key.
pub async fn reseal(database_url: &SecretString, seal: &SealConfig) -> anyhow::Result<u64> {
    let seal = Seal::new(seal)?;
    let mut db = PgConnection::connect_with(&command_options(database_url)?).await?;
    let mut tx = db.begin().await?;
    let webhooks: Vec<(WebhookId, String, Option<String>, Option<String>)> = sqlx::query_as(
        "select id, secret, previous_secret, sealed_headers from webhook where deleted_at is null
         for no key update",
    )
    .fetch_all(&mut *tx)
    .await?;
    let mut count = 0;
    for (id, current, previous, headers) in webhooks {
        let resealed = secret::reseal(&seal, id, &current)?;
        let previous = previous.map(|sealed| secret::reseal(&seal, id, &sealed)).transpose()?;
        let previous = previous.flatten();
        let headers =
            headers.map(|sealed| secret::reseal_headers(&seal, id, &sealed)).transpose()?;
        let headers = headers.flatten();
        if resealed.is_none() && previous.is_none() && headers.is_none() {
            continue;
        }
        sqlx::query(
            "update webhook set secret = coalesce($2, secret),
                                previous_secret = coalesce($3, previous_secret),
                                sealed_headers = coalesce($4, sealed_headers)
             where id = $1",
        )
        .bind(id)
        .bind(resealed)
        .bind(previous)
        .bind(headers)
        .execute(&mut *tx)
        .await?;
        count += 1;
    }
    tx.commit().await?;
    Ok(count)
}
