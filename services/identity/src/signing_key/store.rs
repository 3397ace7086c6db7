//! Signing keys in PostgreSQL. The private part is encrypted.

use std::time::Duration;

use assay_proto::Fault;
use jsonwebtoken::jwk::Jwk;
use sqlx::{PgExecutor, PgTransaction, types::Json};

#[derive(sqlx::FromRow)]
pub(super) struct StoredKey {
    pub(super) kid: String,
    pub(super) public_jwk: Json<Jwk>,
    pub(super) sealed_key: String,
    /// Whether the key may sign; of several, the first one does. The oldest one always may: the clock of
    /// the database may step back to before the time from which it signs.
    pub(super) signs: bool,
}

/// Lists the public keys, newest first.
pub(super) async fn list(db: impl PgExecutor<'_>) -> Result<Vec<StoredKey>, Fault> {
    let keys = sqlx::query_as(
        "select kid, public_jwk, sealed_key,
                signs_from <= now() or signs_from = min(signs_from) over () as signs
         from signing_key
         where public_until is null or public_until > now()
         order by signs_from desc, kid",
    );
    Ok(keys.fetch_all(db).await?)
}

/// Adds a key that signs after `notice`, and after the earlier keys, whose times may be ahead of a clock that
/// has stepped back.
pub(super) async fn insert(
    tx: &mut PgTransaction<'_>,
    kid: &str,
    public: &Jwk,
    sealed: &str,
    notice: Duration,
) -> Result<(), Fault> {
    sqlx::query(
        "insert into signing_key (kid, public_jwk, sealed_key, signs_from)
         select $1, $2, $3, greatest(now(), max(signs_from)) + make_interval(secs => $4)
         from signing_key",
    )
    .bind(kid)
    .bind(Json(public))
    .bind(sealed)
    .bind(notice.as_secs_f64())
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Records the lifetime of the tokens that a key signs.
pub(super) async fn record_lifetime(
    db: impl PgExecutor<'_>,
    kid: &str,
    lifetime: Duration,
) -> Result<(), Fault> {
    let seconds = i64::try_from(lifetime.as_secs()).map_err(Fault::internal)?;
    sqlx::query(
        "update signing_key set token_lifetime_in_s = $2
         where kid = $1 and token_lifetime_in_s < $2",
    )
    .bind(kid)
    .bind(seconds)
    .execute(db)
    .await?;
    Ok(())
}

/// Locks all keys, and returns their ids and encrypted private parts.
pub(super) async fn lock_all(tx: &mut PgTransaction<'_>) -> Result<Vec<(String, String)>, Fault> {
    let keys = sqlx::query_as("select kid, sealed_key from signing_key order by kid for update");
    Ok(keys.fetch_all(&mut **tx).await?)
}

pub(super) async fn update(
    tx: &mut PgTransaction<'_>,
    kid: &str,
    sealed: &str,
) -> Result<(), Fault> {
    let update = sqlx::query("update signing_key set sealed_key = $2 where kid = $1");
    update.bind(kid).bind(sealed).execute(&mut **tx).await?;
    Ok(())
}

/// Retires the earlier keys: they stay public until their last tokens have expired, and for one
/// more hour to allow for clock skew.
pub(super) async fn retire_all_but(tx: &mut PgTransaction<'_>, kid: &str) -> Result<(), Fault> {
    sqlx::query(
        "update signing_key as old
         set public_until = new.signs_from + interval '1 hour'
                            + make_interval(secs => old.token_lifetime_in_s)
         from signing_key as new
         where new.kid = $1 and old.kid <> $1 and old.public_until is null",
    )
    .bind(kid)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Deletes keys that are no longer public.
pub(crate) async fn prune(db: impl PgExecutor<'_>) -> Result<(), Fault> {
    sqlx::query("delete from signing_key where public_until < now()").execute(db).await?;
    Ok(())
}
