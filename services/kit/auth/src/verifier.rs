//! Verifies tokens with identity's public keys, without asking anybody.

use std::{collections::HashMap, sync::Arc, time::Duration};

use assay_proto::{Fault, Permissions, identity::token_service_client::TokenServiceClient};
use assay_runtime::Runtime;
use aws_lc_rs::digest::{SHA256, digest};
use jsonwebtoken::{DecodingKey, decode_header, get_current_timestamp, jwk::JwkSet};
use moka::sync::Cache;
use tokio::sync::{Notify, watch};
use tonic::transport::Channel;

use crate::{
    Caller, anonymous,
    token::{Claims, verify},
};

/// How many verified tokens are remembered; verifying one costs a quarter of a read.
const REMEMBERED: u64 = 100_000;

/// How often the public keys are read again, without being asked to.
const REFRESH: Duration = Duration::from_mins(1);

/// How long a token with an unknown key waits for new keys.
const PATIENCE: Duration = Duration::from_secs(2);

type Keys = HashMap<String, DecodingKey>;

/// Verifies tokens.
#[derive(Clone)]
pub struct Verifier(Arc<Inner>);

struct Inner {
    keys: watch::Sender<Keys>,
    unknown_key: Notify,
    verified: Cache<[u8; 32], (Caller, u64)>,
}

impl Verifier {
    /// Keeps identity's public keys. The program is ready when they are known.
    pub fn watch(runtime: &Runtime, identity: Channel) -> Self {
        let verifier = Self::without_keys();
        let gate = runtime.gate("token keys");
        let (this, stopping) = (verifier.clone(), runtime.stopping());
        runtime.spawn("token keys", async move {
            let mut client = TokenServiceClient::new(identity);
            let mut pause = Duration::from_millis(20);
            while !stopping.is_cancelled() {
                let next = match client.list_keys(anonymous(())).await {
                    Ok(answer) => {
                        this.learn(&answer.into_inner().jwks)?;
                        gate.open();
                        REFRESH
                    }
                    Err(status) => {
                        tracing::debug!(%status, "the token keys cannot be read yet");
                        pause = (pause * 2).min(PATIENCE);
                        pause
                    }
                };
                tokio::select! {
                    () = tokio::time::sleep(next) => {}
                    () = this.0.unknown_key.notified() => {}
                    () = stopping.cancelled() => {}
                }
            }
            Ok(())
        });
        verifier
    }

    /// Verifies with a fixed JSON web key set (RFC 7517).
    pub fn of_keys(jwks: &str) -> anyhow::Result<Self> {
        let verifier = Self::without_keys();
        verifier.learn(jwks)?;
        Ok(verifier)
    }

    /// Verifies nothing until it learns keys.
    pub fn without_keys() -> Self {
        Self(Arc::new(Inner {
            keys: watch::Sender::new(Keys::new()),
            unknown_key: Notify::new(),
            verified: Cache::new(REMEMBERED),
        }))
    }

    /// Verifies from now on with this JSON web key set, and no other keys.
    pub fn learn(&self, jwks: &str) -> anyhow::Result<()> {
        self.0.keys.send_replace(read_keys(jwks)?);
        Ok(())
    }

    /// Who the token belongs to. Every fault of a token is the same [`Fault::Unauthenticated`].
    pub async fn verify(&self, token: &str) -> Result<Caller, Fault> {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        if let Some((caller, expiry)) = self.0.verified.get(&hash) {
            if get_current_timestamp() < expiry {
                return Ok(caller);
            }
            self.0.verified.invalidate(&hash);
        }
        let key = self.key_of(token).await.ok_or(Fault::Unauthenticated)?;
        let claims = verify(token, &key).ok_or(Fault::Unauthenticated)?;
        let expiry = claims.exp;
        let caller = caller(claims, token)?;
        self.0.verified.insert(hash, (caller.clone(), expiry));
        Ok(caller)
    }

    /// The key that a token says it was signed with; a key that was made just now is waited for.
    async fn key_of(&self, token: &str) -> Option<DecodingKey> {
        let id = decode_header(token).ok()?.kid?;
        let mut keys = self.0.keys.subscribe();
        if let Some(key) = keys.borrow().get(&id) {
            return Some(key.clone());
        }
        self.0.unknown_key.notify_one();
        let known = tokio::time::timeout(PATIENCE, keys.wait_for(|keys| keys.contains_key(&id)));
        known.await.ok()?.ok()?.get(&id).cloned()
    }
}

fn caller(claims: Claims, token: &str) -> Result<Caller, Fault> {
    Ok(Caller {
        customer: claims.customer,
        user: claims.sub,
        name: claims.name.into(),
        permissions: Permissions::parse("permissions", &claims.permissions)
            .map_err(|_| Fault::Unauthenticated)?,
        authorization: format!("Bearer {token}").parse().map_err(|_| Fault::Unauthenticated)?,
    })
}

fn read_keys(jwks: &str) -> anyhow::Result<Keys> {
    let keys: JwkSet = serde_json::from_str(jwks)?;
    let named = keys.keys.iter().filter_map(|key| Some((key.common.key_id.clone()?, key)));
    named.map(|(id, key)| Ok((id, DecodingKey::from_jwk(key)?))).collect()
}
