//! Tokens: JSON Web Tokens signed with Ed25519 (RFC 8037), validated according to RFC 8725.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use assay_proto::{ApiTokenId, CustomerId, Fault, Permissions, SessionId, Timestamp, UserId};
use aws_lc_rs::{rand::SystemRandom, signature::Ed25519KeyPair};
use jsonwebtoken::{
    Algorithm, DecodingKey, EncodingKey, Header, Validation, get_current_timestamp,
    jwk::{Jwk, JwkSet, ThumbprintHash},
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

const ISSUER: &str = "assay";
const AUDIENCE: &str = "assay";

/// Audience of stream tokens.
const STREAMS: &str = "assay/streams";

/// Tolerated difference between the clocks of two programs, in seconds.
const LEEWAY: u64 = 5;

/// Maximum lifetime of a token. Older revocations have no effect.
pub const LONGEST_LIFETIME: Duration = Duration::from_hours(24 * 365);

/// Maximum lifetime of a token that comes from an API token. Revocations of API tokens are kept for little longer,
/// since every user can cause many.
pub const LONGEST_EXCHANGED_LIFETIME: Duration = Duration::from_mins(10);

/// A session: a login with all tokens that come from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    pub id: SessionId,
    /// Time of the login, in seconds since 1970-01-01 UTC.
    pub started_at: u64,
}

impl Session {
    /// Starts a session now.
    pub fn start() -> Self {
        Self { id: SessionId::new(), started_at: get_current_timestamp() }
    }

    /// Returns the remaining time of the session, if it may last for `longest`.
    pub fn remaining(self, longest: Duration) -> Duration {
        let end = self.started_at.saturating_add(longest.as_secs());
        Duration::from_secs(end.saturating_sub(get_current_timestamp()))
    }
}

/// Contents of a token to be issued.
#[derive(Clone, Copy, Debug)]
pub struct Grant<'a> {
    pub customer: CustomerId,
    pub user: UserId,
    /// Display name of the user.
    pub name: &'a str,
    pub permissions: Permissions,
    /// API token that the token is exchanged for.
    pub api_token: Option<ApiTokenId>,
    /// Session of the token.
    pub session: Option<Session>,
    /// Time when the fields above were read, by the clock that dates revocations. A later
    /// revocation revokes the token even if the token is signed after it. Default: now.
    pub issued_at: Option<Timestamp>,
    /// Maximum lifetime of the token. Default: that of the issuer.
    pub lifetime: Option<Duration>,
    /// Whether the token is a stream token, which only methods with `assay.streams` accept.
    pub is_for_streams: bool,
}

impl<'a> Grant<'a> {
    /// Returns the grant of a user, without API token, session or limits of its own.
    pub fn new(
        customer: CustomerId,
        user: UserId,
        name: &'a str,
        permissions: Permissions,
    ) -> Self {
        let (api_token, session, issued_at, lifetime) = (None, None, None, None);
        let is_for_streams = false;
        Self {
            customer,
            user,
            name,
            permissions,
            api_token,
            session,
            issued_at,
            lifetime,
            is_for_streams,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Claims {
    iss: String,
    aud: String,
    jti: Uuid,
    iat: u64,
    pub(crate) exp: u64,
    /// `iat` in microseconds, to decide whether a token of the same second is older than a
    /// revocation.
    #[serde(rename = "iat_us")]
    pub(crate) issued_at: i64,
    pub(crate) sub: UserId,
    pub(crate) customer: CustomerId,
    pub(crate) name: String,
    pub(crate) permissions: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) api_token: Option<ApiTokenId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sid: Option<SessionId>,
    /// Time when the session started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    auth_time: Option<u64>,
}

impl Claims {
    pub(crate) fn session(&self) -> Option<Session> {
        let (id, started_at) = self.sid.zip(self.auth_time)?;
        Some(Session { id, started_at })
    }

    pub(crate) fn is_for_streams(&self) -> bool {
        self.aud == STREAMS
    }
}

/// A key for signing tokens: Ed25519, as PKCS#8 DER.
pub struct SigningKey(Vec<u8>);

impl SigningKey {
    pub fn generate() -> Result<Self, Fault> {
        let key = Ed25519KeyPair::generate_pkcs8v1(&SystemRandom::new())
            .map_err(|_| Fault::internal("the system has no random numbers"))?;
        Ok(Self(key.as_ref().to_vec()))
    }

    pub fn from_der(der: Vec<u8>) -> Self {
        Self(der)
    }

    pub fn der(&self) -> &[u8] {
        &self.0
    }
}

/// Signs tokens.
pub struct Issuer {
    key: EncodingKey,
    public: Jwk,
    kid: String,
    lifetime: Duration,
}

impl Issuer {
    /// Returns an issuer that signs with `key`. Its tokens are valid for `lifetime`.
    pub fn new(key: &SigningKey, lifetime: Duration) -> Result<Self, Fault> {
        let key = EncodingKey::from_ed_der(key.der());
        let mut public = Jwk::from_encoding_key(&key, Algorithm::EdDSA).map_err(Fault::internal)?;
        let kid = public.thumbprint(ThumbprintHash::SHA256).map_err(Fault::internal)?;
        public.common.key_id = Some(kid.clone());
        Ok(Self { key, public, kid, lifetime })
    }

    /// Returns the public key with its id.
    pub fn public(&self) -> &Jwk {
        &self.public
    }

    /// Returns the id of the key: its thumbprint (RFC 7638).
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// Returns the public key as a JSON Web Key Set (RFC 7517).
    pub fn jwks(&self) -> Result<String, Fault> {
        let keys = JwkSet { keys: vec![self.public.clone()] };
        serde_json::to_string(&keys).map_err(Fault::internal)
    }

    /// Issues a token.
    pub fn issue(&self, grant: Grant<'_>) -> Result<String, Fault> {
        let now = get_current_timestamp();
        let issued_at = grant.issued_at.map(|time| time.0.timestamp_micros());
        let lifetime = grant.lifetime.unwrap_or(self.lifetime).min(self.lifetime);
        let longest = grant.api_token.map_or(LONGEST_LIFETIME, |_| LONGEST_EXCHANGED_LIFETIME);
        let lifetime = lifetime.min(longest);
        let claims = Claims {
            iss: ISSUER.to_owned(),
            aud: if grant.is_for_streams { STREAMS } else { AUDIENCE }.to_owned(),
            jti: Uuid::now_v7(),
            iat: now,
            exp: now + lifetime.as_secs(),
            issued_at: issued_at.unwrap_or_else(now_in_micros),
            sub: grant.user,
            customer: grant.customer,
            name: grant.name.to_owned(),
            permissions: grant.permissions.to_string(),
            api_token: grant.api_token,
            sid: grant.session.map(|session| session.id),
            auth_time: grant.session.map(|session| session.started_at),
        };
        let mut header = Header::new(Algorithm::EdDSA);
        header.kid = Some(self.kid.clone());
        jsonwebtoken::encode(&header, &claims, &self.key).map_err(Fault::internal)
    }
}

/// Returns the claims of a token, also of a stream token, if it was signed with `key` and is valid now.
pub(crate) fn verify(token: &str, key: &DecodingKey) -> Option<Claims> {
    let mut validation = Validation::new(Algorithm::EdDSA);
    validation.leeway = LEEWAY;
    validation.validate_nbf = true;
    validation.set_issuer(&[ISSUER]);
    validation.set_audience(&[AUDIENCE, STREAMS]);
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    let claims = jsonwebtoken::decode::<Claims>(token, key, &validation).ok()?.claims;
    let lifetime = claims.exp.saturating_sub(claims.iat);
    (lifetime <= LONGEST_LIFETIME.as_secs()).then_some(claims)
}

/// Returns the time in microseconds since 1970-01-01 UTC.
pub(crate) fn now_in_micros() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX)
}
