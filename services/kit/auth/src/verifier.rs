//! Verification of tokens with the known keys and revocations, without a call to the identity
//! service.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use assay_proto::{Fault, Permissions, identity::Revocation};
use assay_rpc::grpc::Channel;
use aws_lc_rs::digest::{SHA256, digest};
use jsonwebtoken::get_current_timestamp;
use moka::sync::Cache;
use tokio::time::Instant;

use crate::{
    Caller, UnconfirmedCaller,
    api_token::{API_TOKEN_PREFIX, Exchange, Exchanged, MARGIN},
    keys::{IDENTITY_UNAVAILABLE, Keys},
    latest::LatestRevocations,
    revocations::{Bearer, Revocations},
    token::{Claims, verify},
};

/// Maximum memory of verified tokens in the cache, in bytes: about 20,000 usual ones. A verification costs about a
/// quarter of a query.
const CACHE_SIZE: u64 = 32 << 20;

/// Memory of a token in the cache without its texts, in bytes.
const ENTRY: usize = 512;

/// Maximum length of a token, in bytes: enough for all permissions and the longest name.
const LONGEST: usize = 4096;

/// Verifies tokens.
#[derive(Clone)]
pub struct Verifier(Arc<Inner>);

struct Inner {
    keys: Keys,
    revocations: Revocations,
    verified: Cache<[u8; 32], Arc<Verified>>,
    exchange: Exchange,
    /// Reads the latest revocations from identity.
    latest: OnceLock<LatestRevocations>,
    is_of_issuer: bool,
}

/// A valid token.
struct Verified {
    caller: Caller,
    bearer: Bearer,
    /// Expiry in seconds since 1970-01-01 UTC.
    expiry: u64,
    /// Generation of the revocations that it was last compared with.
    checked: AtomicU64,
    is_for_streams: bool,
}

impl Verifier {
    /// Returns a verifier with fixed keys, a JSON Web Key Set (RFC 7517).
    pub fn of_keys(jwks: &str) -> anyhow::Result<Self> {
        let verifier = Self::without_keys();
        verifier.set_keys(jwks)?;
        Ok(verifier)
    }

    /// Returns a verifier without keys, which rejects all tokens.
    pub(crate) fn without_keys() -> Self {
        Self::new(false)
    }

    /// Returns the verifier of the identity service, at first without keys. Its methods that create
    /// credentials or grants compare the caller's token with the latest revocations in their transactions.
    pub fn of_issuer() -> Self {
        Self::new(true)
    }

    fn new(is_of_issuer: bool) -> Self {
        Self(Arc::new(Inner {
            keys: Keys::default(),
            revocations: Revocations::default(),
            verified: Cache::builder()
                .weigher(|_: &[u8; 32], token: &Arc<Verified>| token.size())
                .max_capacity(CACHE_SIZE)
                .build(),
            exchange: Exchange::new(),
            latest: OnceLock::new(),
            is_of_issuer,
        }))
    }

    pub(crate) fn is_of_issuer(&self) -> bool {
        self.0.is_of_issuer
    }

    pub(crate) fn read_latest_with(&self, latest: LatestRevocations) {
        let _ = self.0.latest.set(latest);
    }

    /// Returns the caller like [`Verifier::verify`], after a read of the latest revocations. Fails with
    /// [`Fault::Unavailable`] if identity does not answer.
    pub(crate) async fn verify_latest(&self, token: &str) -> Result<Caller, Fault> {
        // An invalid token causes no call.
        self.verify(token).await?;
        if let Some(latest) = self.0.latest.get() {
            latest.read(&self.0.revocations).await.map_err(|status| {
                tracing::debug!(%status, "cannot read the latest revocations");
                IDENTITY_UNAVAILABLE
            })?;
        }
        self.verify(token).await
    }

    /// Replaces the keys with those of a JSON Web Key Set.
    pub fn set_keys(&self, jwks: &str) -> anyhow::Result<()> {
        self.0.keys.replace(jwks)
    }

    /// Rejects the revoked tokens from now on.
    pub fn revoke(&self, revocation: &Revocation) {
        self.0.revocations.add(revocation);
    }

    /// Forgets the revocations of tokens that were issued until this time, in microseconds since 1970: they have
    /// expired.
    pub fn forget_revocations(&self, expired_until: i64) {
        self.0.revocations.remove_expired(expired_until);
    }

    /// Sets the identity service that exchanges API tokens. Without one, API tokens are rejected.
    pub fn exchange_at(&self, identity: Channel) {
        self.0.exchange.set_identity(identity);
    }

    /// Verifies the token of a caller again, after the latest revocations were received.
    pub async fn confirm(&self, caller: &UnconfirmedCaller) -> Result<(), Fault> {
        let token = caller.authorization.to_str().ok();
        let token = token.and_then(|value| value.strip_prefix("Bearer "));
        self.verify(token.ok_or(Fault::Unauthenticated)?).await.map(drop)
    }

    /// Returns the caller with a token or API token. Any invalid token fails with
    /// [`Fault::Unauthenticated`], and so does a stream token; one that may be valid fails with
    /// [`Fault::Unavailable`] until the keys and revocations are known.
    pub async fn verify(&self, token: &str) -> Result<Caller, Fault> {
        self.verify_any(token, |is_for_streams| !is_for_streams).await
    }

    /// Returns the caller like [`Verifier::verify`], also with a stream token.
    pub async fn verify_for_stream(&self, token: &str) -> Result<Caller, Fault> {
        self.verify_any(token, |_| true).await
    }

    /// Returns the caller with a stream token. Any other token fails with [`Fault::Unauthenticated`].
    pub async fn verify_stream_token(&self, token: &str) -> Result<Caller, Fault> {
        self.verify_any(token, |is_for_streams| is_for_streams).await
    }

    async fn verify_any(
        &self,
        token: &str,
        accepts: impl Fn(bool) -> bool + Send,
    ) -> Result<Caller, Fault> {
        if token.len() > LONGEST {
            return Err(Fault::Unauthenticated);
        }
        if token.starts_with(API_TOKEN_PREFIX) {
            if !accepts(false) {
                return Err(Fault::Unauthenticated);
            }
            return self.caller_of_api_token(token).await;
        }
        let verified = self.verified(token).await?;
        if !accepts(verified.is_for_streams) {
            return Err(Fault::Unauthenticated);
        }
        Ok(verified.caller.clone())
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.0.keys
    }

    pub(crate) fn revocations(&self) -> &Revocations {
        &self.0.revocations
    }

    /// Exchanges an API token, unless the token of the last exchange is still valid.
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
        let Some(token) = self.0.exchange.exchange(secret).await? else {
            *known = Some(Exchanged::rejected());
            return Err(Fault::Unauthenticated);
        };
        let verified = self.verified(&token).await?;
        let remaining = verified.expiry.saturating_sub(get_current_timestamp());
        let until = Instant::now() + Duration::from_secs(remaining).saturating_sub(MARGIN);
        *known = Some(Exchanged { token: Some(token), until });
        Ok(verified.caller.clone())
    }

    async fn verified(&self, token: &str) -> Result<Arc<Verified>, Fault> {
        let hash = hash(token);
        if let Some(known) = self.0.verified.get(&hash) {
            if get_current_timestamp() < known.expiry && self.is_valid(&known) {
                return Ok(known);
            }
            self.0.verified.invalidate(&hash);
        }
        let key = self.0.keys.of_token(token).await?;
        let claims = verify(token, &key).ok_or(Fault::Unauthenticated)?;
        if self.0.revocations.are_incomplete() {
            return Err(IDENTITY_UNAVAILABLE);
        }
        let mut verified = Verified::of(claims, token)?;
        if self.0.revocations.is_revoked(&verified.bearer) {
            return Err(Fault::Unauthenticated);
        }
        if let Some(name) = self.0.revocations.new_name(&verified.bearer) {
            verified.caller.name = name;
        }
        let verified = Arc::new(verified);
        self.0.verified.insert(hash, verified.clone());
        Ok(verified)
    }

    /// Returns whether a cached token is neither revoked nor has an outdated name. Compares it only
    /// if revocations were added since the last time.
    fn is_valid(&self, known: &Verified) -> bool {
        let generation = self.0.revocations.generation();
        if known.checked.load(Ordering::Acquire) == generation {
            return true;
        }
        let revocations = &self.0.revocations;
        let renamed = |name: Arc<str>| name != known.caller.name;
        if revocations.is_revoked(&known.bearer)
            || revocations.new_name(&known.bearer).is_some_and(renamed)
        {
            return false;
        }
        known.checked.store(generation, Ordering::Release);
        true
    }
}

impl Verified {
    /// Returns the memory that it takes in the cache, in bytes.
    fn size(&self) -> u32 {
        let texts = self.caller.authorization.as_encoded_bytes().len() + self.caller.name.len();
        u32::try_from(ENTRY + texts).unwrap_or(u32::MAX)
    }

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
            is_for_streams: claims.is_for_streams(),
            // The next use compares it with all revocations.
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

#[cfg(test)]
mod tests;
