//! The keys that tokens are signed with: one signs, and several can be public, so that a key can
//! follow another one without a token that is refused.

mod store;

use std::{sync::Arc, time::Duration};

use assay_auth::{Issuer, Seal, SigningKey, Verifier};
use assay_proto::{CustomerId, Fault, Permissions, UserId};
use jsonwebtoken::jwk::{Jwk, JwkSet};
use sqlx::{PgExecutor, PgTransaction};
use tokio::sync::watch;

/// Signs tokens, and says which public keys they are verified with.
#[derive(Clone)]
pub(crate) struct Keys(Arc<Inner>);

struct Inner {
    seal: Seal,
    lifetime: Duration,
    verifier: Verifier,
    loaded: watch::Sender<Option<Arc<Loaded>>>,
}

/// The keys as they were when they were last read.
struct Loaded {
    issuer: Issuer,
    jwks: String,
}

impl Keys {
    /// No keys, until they are loaded. Tokens are valid for `lifetime`; `verifier` learns the
    /// public keys.
    pub(crate) fn new(seal: Seal, lifetime: Duration, verifier: Verifier) -> Self {
        let loaded = watch::Sender::new(None);
        Self(Arc::new(Inner { seal, lifetime, verifier, loaded }))
    }

    /// Makes the first key.
    pub(crate) async fn make_first(&self, tx: &mut PgTransaction<'_>) -> Result<(), Fault> {
        if !store::list(&mut **tx).await?.is_empty() {
            return Ok(());
        }
        let key = SigningKey::generate()?;
        let public = public_key(&key)?;
        let kid = public.common.key_id.as_deref().unwrap_or_default();
        let sealed = self.0.seal.close(&owner(kid), key.der())?;
        store::insert(tx, kid, &public, &sealed).await
    }

    /// Reads the keys, to sign and verify with these from now on.
    pub(crate) async fn load(&self, db: impl PgExecutor<'_>) -> Result<(), Fault> {
        let keys = store::list(db).await?;
        let signing = keys.iter().find(|key| key.signs);
        let signing = signing.ok_or_else(|| Fault::internal("there is no key to sign with"))?;
        let der = self.0.seal.open(&owner(&signing.kid), &signing.sealed_key)?;
        let issuer = Issuer::new(&SigningKey::from_der(der), self.0.lifetime)?;

        let public = keys.into_iter().map(|key| key.public_jwk.0).collect();
        let jwks = serde_json::to_string(&JwkSet { keys: public }).map_err(Fault::internal)?;
        self.0.verifier.learn(&jwks).map_err(Fault::internal)?;
        self.0.loaded.send_replace(Some(Arc::new(Loaded { issuer, jwks })));
        Ok(())
    }

    /// Signs a token for a user of a customer.
    pub(crate) fn issue(
        &self,
        customer: CustomerId,
        user: UserId,
        name: &str,
        permissions: Permissions,
    ) -> Result<String, Fault> {
        self.loaded()?.issuer.issue(customer, user, name, permissions)
    }

    /// The public keys as a JSON web key set.
    pub(crate) fn public(&self) -> Result<String, Fault> {
        Ok(self.loaded()?.jwks.clone())
    }

    fn loaded(&self) -> Result<Arc<Loaded>, Fault> {
        self.0.loaded.borrow().clone().ok_or(Fault::Unavailable("the key for tokens"))
    }
}

/// The record that a sealed key belongs to.
fn owner(kid: &str) -> String {
    format!("signing_key/{kid}")
}

fn public_key(key: &SigningKey) -> Result<Jwk, Fault> {
    let jwks = Issuer::new(key, Duration::ZERO)?.jwks()?;
    let jwks: JwkSet = serde_json::from_str(&jwks).map_err(Fault::internal)?;
    jwks.keys.into_iter().next().ok_or_else(|| Fault::internal("a key has no public part"))
}
