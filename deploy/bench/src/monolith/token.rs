//! Tokens of the baseline: JSON Web Tokens, verified once and then found in a cache.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use axum::extract::FromRequestParts;
use http::{StatusCode, request::Parts};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use moka::sync::Cache;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::App;

/// The baseline is only reachable from this machine, as long as the measurement lasts.
const SECRET: &[u8] = b"a secret of the baseline";

const LIFETIME: Duration = Duration::from_hours(24);

const CACHE_SIZE: u64 = 100_000;

/// The user that a token was issued for.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Caller {
    pub(super) customer: Uuid,
    sub: Uuid,
    exp: u64,
}

/// Issues a token for a user of a customer.
pub(super) fn issue(customer: Uuid) -> Result<String> {
    let exp = (SystemTime::now() + LIFETIME).duration_since(UNIX_EPOCH)?.as_secs();
    let caller = Caller { customer, sub: Uuid::now_v7(), exp };
    Ok(encode(&Header::new(Algorithm::HS256), &caller, &EncodingKey::from_secret(SECRET))?)
}

/// Verifies tokens.
#[derive(Clone)]
pub(super) struct Verifier(Cache<String, Caller>);

impl Verifier {
    pub(super) fn new() -> Self {
        Self(Cache::new(CACHE_SIZE))
    }

    fn verify(&self, token: &str) -> Option<Caller> {
        if let Some(caller) = self.0.get(token) {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
            return (now < caller.exp).then_some(caller);
        }
        let key = DecodingKey::from_secret(SECRET);
        let caller: Caller = decode(token, &key, &Validation::new(Algorithm::HS256)).ok()?.claims;
        self.0.insert(token.to_owned(), caller);
        Some(caller)
    }
}

impl<D: Sync> FromRequestParts<App<D>> for Caller {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, app: &App<D>) -> Result<Self, StatusCode> {
        let header = parts.headers.get("authentication").and_then(|header| header.to_str().ok());
        let token = header.and_then(|header| header.strip_prefix("Bearer "));
        token.and_then(|token| app.verifier.verify(token)).ok_or(StatusCode::UNAUTHORIZED)
    }
}
