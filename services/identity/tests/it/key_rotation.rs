//! Rotation of the signing keys.

use anyhow::{Context, Result};
use assay_auth::{SealConfig, new_seal_key};
use assay_identity::{reseal, rotate_keys};
use assay_testkit::eventually;
use secrecy::ExposeSecret;

use crate::world::{ADMIN, Identity, PASSWORD, Settings};

/// The ids of the public keys.
async fn public(identity: &Identity) -> Result<Vec<String>> {
    let jwks: serde_json::Value = serde_json::from_str(&identity.keys().await?)?;
    let keys = jwks["keys"].as_array().context("keys")?;
    Ok(keys.iter().filter_map(|key| Some(key["kid"].as_str()?.to_owned())).collect())
}

/// The id of the key that signed a token.
fn signer(token: &str) -> Result<String> {
    jsonwebtoken::decode_header(token)?.kid.context("the token has no key id")
}

#[tokio::test]
async fn a_new_key_is_published_before_it_signs_and_the_old_one_stays_published() -> Result<()> {
    let settings = Settings::new().await?.with_administrator();
    let identity = Identity::start(&settings).await?;
    let old = public(&identity).await?;
    let caller = identity.caller_of(ADMIN).await?;

    let new = rotate_keys(&settings.database_url.as_str().into(), &settings.seal()).await?;
    let both = eventually("the new key to be published", async || {
        public(&identity).await.ok().filter(|keys| keys.len() == 2)
    })
    .await;
    assert!(both.contains(&new) && both.contains(&old[0]));
    assert_eq!(signer(&identity.login(ADMIN, PASSWORD).await?)?, old[0]);

    sqlx::query("update signing_key set signs_from = now() where kid = $1")
        .bind(&new)
        .execute(&identity.db)
        .await?;
    eventually("the new key to sign", async || {
        // A login would hash the password.
        let token = identity.refine(&caller, &caller.customer.to_string()).await.ok()?;
        identity.caller(&token).await.ok()?;
        (signer(&token).ok()? == new).then_some(())
    })
    .await;
    assert!(identity.accepts(&caller).await, "the old token is still valid");

    let left: f64 = sqlx::query_scalar(
        "select extract(epoch from public_until - signs_from)::float8 / 3600
         from signing_key where kid = $1",
    )
    .bind(&old[0])
    .fetch_one(&identity.db)
    .await?;
    assert!(left > 12.0, "the old key is public for as long as its tokens are valid");
    Ok(())
}

#[tokio::test]
async fn a_clock_that_steps_back_to_before_a_key_signs_does_not_end_the_service() -> Result<()> {
    let settings = Settings::new().await?.with_administrator();
    let identity = Identity::start(&settings).await?;
    identity.login(ADMIN, PASSWORD).await?;
    // The only key signs from ten minutes after what is now the present.
    sqlx::query("update signing_key set signs_from = now() + interval '10 minutes'")
        .execute(&identity.db)
        .await?;
    let restarted = Identity::start(&settings).await?;
    restarted.login(ADMIN, PASSWORD).await?;
    let old = public(&restarted).await?;

    // A new key waits for its time, however far the clock is behind.
    let new = rotate_keys(&settings.database_url.as_str().into(), &settings.seal()).await?;
    eventually("the new key to be published", async || {
        public(&restarted).await.ok().filter(|keys| keys.contains(&new))
    })
    .await;
    assert_eq!(signer(&restarted.login(ADMIN, PASSWORD).await?)?, old[0]);
    Ok(())
}

#[tokio::test]
async fn resealing_encrypts_signing_keys_with_the_new_key() -> Result<()> {
    let settings = Settings::new().await?.with_administrator();
    Identity::start(&settings).await?.login(ADMIN, PASSWORD).await?;
    let new = new_seal_key("new")?;
    let both =
        format!("{},{}", new.expose_secret(), settings.seal().encryption_keys.expose_secret());
    let (url, both) =
        (settings.database_url.as_str().into(), SealConfig { encryption_keys: both.into() });
    assert_eq!(reseal(&url, &both).await?, 1);
    assert_eq!(reseal(&url, &both).await?, 0);
    let sealed: Vec<String> = sqlx::query_scalar("select sealed_key from signing_key")
        .fetch_all(&sqlx::PgPool::connect(&settings.database_url).await?)
        .await?;
    assert!(sealed.iter().all(|key| key.starts_with("new.")));
    Ok(())
}
