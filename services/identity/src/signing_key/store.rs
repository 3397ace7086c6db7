//! The keys in PostgreSQL: the public part in clear, the other one sealed.

use assay_proto::Fault;
use jsonwebtoken::jwk::Jwk;
use sqlx::{PgExecutor, PgTransaction, types::Json};

#[derive(sqlx::FromRow)]
pub(super) struct StoredKey {
    pub(super) kid: String,
    pub(super) public_jwk: Json<Jwk>,
    pub(super) sealed_key: String,
    /// Whether its time has come; of several such keys the first one signs.
    pub(super) signs: bool,
}

/// Lists the keys that tokens are verified with, the newest first.
pub(super) async fn list(db: impl PgExecutor<'_>) -> Result<Vec<StoredKey>, Fault> {
    let keys = sqlx::query_as(
        "select kid, public_jwk, sealed_key, signs_from <= now() as signs
         from signing_key
         where public_until is null or public_until > now()
         order by signs_from desc, kid",
    );
    Ok(keys.fetch_all(db).await?)
}

pub(super) async fn insert(
    tx: &mut PgTransaction<'_>,
    kid: &str,
    public: &Jwk,
    sealed: &str,
) -> Result<(), Fault> {
    sqlx::query("insert into signing_key (kid, public_jwk, sealed_key) values ($1, $2, $3)")
        .bind(kid)
        .bind(Json(public))
        .bind(sealed)
        .execute(&mut **tx)
        .await?;
    Ok(())
}
