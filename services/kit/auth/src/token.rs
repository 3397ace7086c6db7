//! Tokens: JSON web tokens signed with Ed25519 (RFC 8037), checked as RFC 8725 advises.

use std::time::Duration;

use assay_proto::{CustomerId, Fault, Permissions, UserId};
use aws_lc_rs::{rand::SystemRandom, signature::Ed25519KeyPair};
use jsonwebtoken::{
    Algorithm, DecodingKey, EncodingKey, Header, Validation, get_current_timestamp,
    jwk::{Jwk, JwkSet, ThumbprintHash},
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

const ISSUER: &str = "assay";
const AUDIENCE: &str = "assay";

/// How far the clocks of two programs may differ, in seconds.
const LEEWAY: u64 = 5;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Claims {
    iss: String,
    aud: String,
    jti: Uuid,
    iat: u64,
    pub(crate) exp: u64,
    pub(crate) sub: UserId,
    pub(crate) customer: CustomerId,
    pub(crate) name: String,
    pub(crate) permissions: String,
}

/// A key that tokens are signed with: Ed25519, as PKCS#8 DER.
pub struct SigningKey(Vec<u8>);

impl SigningKey {
    pub fn generate() -> Result<Self, Fault> {
        let key = Ed25519KeyPair::generate_pkcs8v1(&SystemRandom::new())
            .map_err(|_| Fault::internal("no random numbers"))?;
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
    lifetime: Duration,
}

impl Issuer {
    /// Signs with `key`; tokens are valid for `lifetime`.
    pub fn new(key: &SigningKey, lifetime: Duration) -> Result<Self, Fault> {
        let key = EncodingKey::from_ed_der(key.der());
        let mut public = Jwk::from_encoding_key(&key, Algorithm::EdDSA).map_err(Fault::internal)?;
        public.common.key_id =
            Some(public.thumbprint(ThumbprintHash::SHA256).map_err(Fault::internal)?);
        Ok(Self { key, public, lifetime })
    }

    /// The public key as a JSON web key set (RFC 7517).
    pub fn jwks(&self) -> Result<String, Fault> {
        let keys = JwkSet { keys: vec![self.public.clone()] };
        serde_json::to_string(&keys).map_err(Fault::internal)
    }

    /// A token for a user of a customer.
    pub fn issue(
        &self,
        customer: CustomerId,
        user: UserId,
        name: &str,
        permissions: Permissions,
    ) -> Result<String, Fault> {
        let now = get_current_timestamp();
        let claims = Claims {
            iss: ISSUER.to_owned(),
            aud: AUDIENCE.to_owned(),
            jti: Uuid::now_v7(),
            iat: now,
            exp: now + self.lifetime.as_secs(),
            sub: user,
            customer,
            name: name.to_owned(),
            permissions: permissions.to_string(),
        };
        let mut header = Header::new(Algorithm::EdDSA);
        header.kid.clone_from(&self.public.common.key_id);
        jsonwebtoken::encode(&header, &claims, &self.key).map_err(Fault::internal)
    }
}

/// The claims of a token that was signed with `key` and is valid now.
pub(crate) fn verify(token: &str, key: &DecodingKey) -> Option<Claims> {
    let mut validation = Validation::new(Algorithm::EdDSA);
    validation.leeway = LEEWAY;
    validation.validate_nbf = true;
    validation.set_issuer(&[ISSUER]);
    validation.set_audience(&[AUDIENCE]);
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    jsonwebtoken::decode::<Claims>(token, key, &validation).ok().map(|data| data.claims)
}
