//! Verifies tokens with what is known of identity's keys and revocations, without asking anybody.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use assay_proto::{Fault, Permissions, identity::Revocation};
use assay_runtime::grpc::Channel;
use aws_lc_rs::digest::{SHA256, digest};
use jsonwebtoken::get_current_timestamp;
use moka::sync::Cache;
use tokio::time::Instant;

use crate::{
    Caller,
    api_token::{API_TOKEN_PREFIX, Exchange, Exchanged, MARGIN},
    keys::{IDENTITY_AWAY, Keys},
    revocations::{Bearer, Revocations},
    token::{Claims, verify},
};

/// How many verified tokens are remembered; verifying one costs a quarter of a read.
const REMEMBERED: u64 = 100_000;

/// What a token may have at most, in bytes: more than all permissions and the longest name make.
const LONGEST: usize = 4096;

/// Verifies tokens.
#[derive(Clone)]
pub struct Verifier(Arc<Inner>);

struct Inner {
    keys: Keys,
    revocations: Revocations,
    verified: Cache<[u8; 32], Arc<Verified>>,
    exchange: Exchange,
}

/// A token that was found valid.
struct Verified {
    caller: Caller,
    bearer: Bearer,
    /// In seconds since 1970.
    expiry: u64,
    /// The generation of revocations that it was last compared with.
    checked: AtomicU64,
}

impl Verifier {
    /// Verifies with a fixed JSON web key set (RFC 7517).
    pub fn of_keys(jwks: &str) -> anyhow::Result<Self> {
        let verifier = Self::without_keys();
        verifier.learn(jwks)?;
        Ok(verifier)
    }

    /// Verifies nothing until it learns keys.
    pub fn without_keys() -> Self {
        Self(Arc::new(Inner {
            keys: Keys::default(),
            revocations: Revocations::default(),
            verified: Cache::new(REMEMBERED),
            exchange: Exchange::new(),
        }))
    }

    /// Verifies from now on with this JSON web key set, and no other keys.
    pub fn learn(&self, jwks: &str) -> anyhow::Result<()> {
        self.0.keys.learn(jwks)
    }

    /// Refuses from now on the tokens that this has revoked.
    pub fn revoke(&self, revocation: &Revocation) {
        self.0.revocations.learn(revocation);
    }

    /// Exchanges API tokens at this identity service. Without one, they are refused.
    pub fn exchange_at(&self, identity: Channel) {
        self.0.exchange.with(identity);
    }

    /// Returns whom the token or API token belongs to. Every fault of a token is the same
    /// [`Fault::Unauthenticated`]. A token that may be valid fails with [`Fault::Unavailable`] until
    /// identity's keys and revocations are known.
    pub async fn verify(&self, token: &str) -> Result<Caller, Fault> {
        if token.len() > LONGEST {
            return Err(Fault::Unauthenticated);
        }
        if token.starts_with(API_TOKEN_PREFIX) {
            return self.caller_of_api_token(token).await;
        }
        Ok(self.verified(token).await?.caller.clone())
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.0.keys
    }

    pub(crate) fn revocations(&self) -> &Revocations {
        &self.0.revocations
    }

    /// Exchanges an API token, unless the token that it was exchanged for is valid still.
    async fn caller_of_api_token(&self, secret: &str) -> Result<Caller, Fault> {
        let slot = self.0.exchange.slot(hash(secret));
        let mut known = slot.lock().await;
        if let Some(Exchanged { token, until }) = &*known
            && Instant::now() < *until
        {
            let token = token.as_deref().ok_or(Fault::Unauthenticated)?;
            if let Ok(verified) = self.verified(token).await {
                return Ok(verified.caller.clone());
            }
        }
        let Some(token) = self.0.exchange.ask(secret).await? else {
            *known = Some(Exchanged::refused());
            return Err(Fault::Unauthenticated);
        };
        let verified = self.verified(&token).await?;
        let rest = Duration::from_secs(verified.expiry.saturating_sub(get_current_timestamp()));
        let until = Instant::now() + rest.saturating_sub(MARGIN);
        *known = Some(Exchanged { token: Some(token), until });
        Ok(verified.caller.clone())
    }

    async fn verified(&self, token: &str) -> Result<Arc<Verified>, Fault> {
        let hash = hash(token);
        if let Some(known) = self.0.verified.get(&hash) {
            if get_current_timestamp() < known.expiry && self.lives(&known) {
                return Ok(known);
            }
            self.0.verified.invalidate(&hash);
        }
        let key = self.0.keys.of_token(token).await?;
        let claims = verify(token, &key).ok_or(Fault::Unauthenticated)?;
        if self.0.revocations.are_expected() {
            return Err(IDENTITY_AWAY);
        }
        let mut verified = Verified::of(claims, token)?;
        if self.0.revocations.revoke(&verified.bearer) {
            return Err(Fault::Unauthenticated);
        }
        if let Some(name) = self.0.revocations.new_name(&verified.bearer) {
            verified.caller.name = name;
        }
        let verified = Arc::new(verified);
        self.0.verified.insert(hash, verified.clone());
        Ok(verified)
    }

    /// Whether nothing has revoked the token or changed its name. It is compared only if something
    /// was revoked since.
    fn lives(&self, known: &Verified) -> bool {
        let generation = self.0.revocations.generation();
        if known.checked.load(Ordering::Acquire) == generation {
            return true;
        }
        let revocations = &self.0.revocations;
        let renamed = |name: Arc<str>| name != known.caller.name;
        if revocations.revoke(&known.bearer)
            || revocations.new_name(&known.bearer).is_some_and(renamed)
        {
            return false;
        }
        known.checked.store(generation, Ordering::Release);
        true
    }
}

impl Verified {
    fn of(claims: Claims, token: &str) -> Result<Self, Fault> {
        let permissions = Permissions::parse("permissions", &claims.permissions);
        let authorization = format!("Bearer {token}").parse();
        Ok(Self {
            bearer: Bearer {
                customer: claims.customer,
                user: claims.sub,
                api_token: claims.api_token,
                session: claims.session().map(|session| session.id),
                issued_at: claims.issued_at,
            },
            expiry: claims.exp,
            // Compared with all that is known when it is next seen.
            checked: AtomicU64::new(0),
            caller: Caller {
                customer: claims.customer,
                user: claims.sub,
                session: claims.session(),
                name: claims.name.into(),
                permissions: permissions.map_err(|_| Fault::Unauthenticated)?,
                api_token: claims.api_token,
                address: None,
                authorization: authorization.map_err(|_| Fault::Unauthenticated)?,
            },
        })
    }
}

fn hash(token: &str) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    hash
}
