//! Keys for signing tokens. One key signs, and several may be public, so that keys can be rotated
//! without rejected tokens.

pub(crate) mod store;

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use assay_auth::{Grant, Issuer, Seal, SealConfig, SigningKey, Verifier};
use assay_database::command_options;
use assay_proto::Fault;
use assay_runtime::Runtime;
use jsonwebtoken::jwk::JwkSet;
use secrecy::SecretString;
use sqlx::{Connection, PgConnection, PgPool, PgTransaction};
use tokio::{sync::watch, time::sleep};

/// Interval of reading the keys, which another program may have rotated.
const REFRESH: Duration = Duration::from_secs(5);

/// Time for which a new key is public before it signs, so that all verifiers know it.
const NOTICE: Duration = Duration::from_mins(2);

/// Signs tokens, and returns the public keys for verifying them.
#[derive(Clone)]
pub(crate) struct Keys(Arc<Inner>);

struct Inner {
    seal: Seal,
    lifetime: Duration,
    verifier: Verifier,
    loaded: watch::Sender<Option<Arc<Loaded>>>,
}

/// The keys as last read.
struct Loaded {
    issuer: Issuer,
    jwks: String,
}

impl Keys {
    /// Returns an empty set until the keys are loaded. `verifier` gets the public keys.
    pub(crate) fn new(seal: Seal, lifetime: Duration, verifier: Verifier) -> Self {
        let loaded = watch::Sender::new(None);
        Self(Arc::new(Inner { seal, lifetime, verifier, loaded }))
    }

    /// Creates a key if there is none.
    pub(crate) async fn create_first(&self, tx: &mut PgTransaction<'_>) -> Result<(), Fault> {
        if store::list(&mut **tx).await?.is_empty() {
            create(tx, &self.0.seal, Duration::ZERO).await?;
        }
        Ok(())
    }

    /// Reads the keys, and uses them from now on.
    pub(crate) async fn load(&self, db: &PgPool) -> Result<(), Fault> {
        let keys = store::list(db).await?;
        let signing = keys.iter().find(|key| key.signs);
        let signing = signing.ok_or_else(|| Fault::internal("no signing key is active"))?;
        let issuer = self.issuer(&signing.kid, &signing.sealed_key)?;
        store::record_lifetime(db, &signing.kid, self.0.lifetime).await?;

        let public = keys.into_iter().map(|key| key.public_jwk.0).collect();
        let jwks = serde_json::to_string(&JwkSet { keys: public }).map_err(Fault::internal)?;
        self.0.verifier.set_keys(&jwks).map_err(Fault::internal)?;
        self.0.loaded.send_replace(Some(Arc::new(Loaded { issuer, jwks })));
        Ok(())
    }

    /// Starts to read the keys periodically, after they were loaded.
    pub(crate) fn spawn(&self, runtime: &Runtime, db: &PgPool) {
        let (this, db, stopping) = (self.clone(), db.clone(), runtime.stopping());
        runtime.spawn("signing keys", async move {
            let mut loaded = this.0.loaded.subscribe();
            let work = async {
                loaded.wait_for(Option::is_some).await?;
                loop {
                    sleep(REFRESH).await;
                    match this.load(&db).await {
                        Ok(()) => {}
                        Err(Fault::Unavailable(_)) => {
                            tracing::debug!("cannot read the signing keys; will retry");
                        }
                        Err(fault) => return Err(anyhow::Error::from(fault)),
                    }
                }
            };
            stopping.run_until_cancelled(work).await.unwrap_or(Ok(()))
        });
    }

    /// Signs a token.
    pub(crate) fn issue(&self, grant: Grant<'_>) -> Result<String, Fault> {
        self.loaded()?.issuer.issue(grant)
    }

    /// Returns the public keys as a JSON web key set.
    pub(crate) fn public(&self) -> Result<String, Fault> {
        Ok(self.loaded()?.jwks.clone())
    }

    fn loaded(&self) -> Result<Arc<Loaded>, Fault> {
        self.0.loaded.borrow().clone().ok_or(Fault::Unavailable("signing key"))
    }

    fn issuer(&self, kid: &str, sealed: &str) -> Result<Issuer, Fault> {
        let der = self.0.seal.open(&owner(kid), sealed)?;
        Issuer::new(&SigningKey::from_der(der), self.0.lifetime)
    }
}

/// Creates a key that signs all tokens after two minutes, and returns its id. Old keys stay public
/// until their tokens have expired. Running programs read the new key within seconds.
pub async fn rotate_keys(database_url: &SecretString, seal: &SealConfig) -> anyhow::Result<String> {
    let seal = Seal::new(seal)?;
    let mut db = PgConnection::connect_with(&command_options(database_url)?).await?;
    let mut tx = db.begin().await?;
    let kid = create(&mut tx, &seal, NOTICE).await?;
    store::retire_all_but(&mut tx, &kid).await?;
    tx.commit().await.context("cannot store the new key")?;
    Ok(kid)
}

/// Re-encrypts all keys with the first encryption key. Returns the number of keys that used another
/// one.
pub async fn reseal(database_url: &SecretString, seal: &SealConfig) -> anyhow::Result<u64> {
    let seal = Seal::new(seal)?;
    let mut db = PgConnection::connect_with(&command_options(database_url)?).await?;
    let mut tx = db.begin().await?;
    let mut count = 0;
    for (kid, sealed) in store::lock_all(&mut tx).await? {
        if let Some(resealed) = seal.reseal(&owner(&kid), &sealed)? {
            store::update(&mut tx, &kid, &resealed).await?;
            count += 1;
        }
    }
    tx.commit().await?;
    Ok(count)
}

/// Creates a key that signs after `notice`.
async fn create(
    tx: &mut PgTransaction<'_>,
    seal: &Seal,
    notice: Duration,
) -> Result<String, Fault> {
    let key = SigningKey::generate()?;
    let issuer = Issuer::new(&key, Duration::ZERO)?;
    let sealed = seal.close(&owner(issuer.kid()), key.der())?;
    store::insert(tx, issuer.kid(), issuer.public(), &sealed, notice).await?;
    Ok(issuer.kid().to_owned())
}

/// Returns the record that an encrypted key is bound to.
fn owner(kid: &str) -> String {
    format!("signing_key/{kid}")
}
