//! API tokens: secrets of machines. The identity service exchanges them for tokens that are valid
//! for a few minutes.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use assay_proto::{
    Fault,
    identity::{ExchangeApiTokenRequest, token_service_client::TokenServiceClient},
};
use assay_rpc::grpc::Channel;
use moka::sync::Cache;
use tokio::{sync::Mutex, time::Instant};
use tonic::Code;

use crate::caller::anonymous_within;

/// Prefix of the secrets of API tokens.
pub const API_TOKEN_PREFIX: &str = "assay_";

/// Maximum number of secrets in the cache, valid or not.
const CACHE_SIZE: u64 = 20_000;

/// Time for which a rejected secret is not exchanged again.
const REJECTED_FOR: Duration = Duration::from_secs(5);

/// Time before the expiry of a token at which the secret is exchanged again.
pub(crate) const MARGIN: Duration = Duration::from_secs(30);

/// Timeout of an exchange.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Exchanges secrets for tokens; concurrent calls with the same secret share one exchange.
pub(crate) struct Exchange {
    identity: OnceLock<TokenServiceClient<Channel>>,
    slots: Cache<[u8; 32], Slot>,
}

/// Cache entry of a secret. It is locked during the exchange.
pub(crate) type Slot = Arc<Mutex<Option<Exchanged>>>;

/// Result of an exchange.
pub(crate) struct Exchanged {
    /// `None` if the secret was rejected.
    pub(crate) token: Option<Arc<str>>,
    /// Time until which the result is used.
    pub(crate) until: Instant,
}

impl Exchange {
    /// Returns an exchange without an identity service, which rejects all secrets.
    pub(crate) fn new() -> Self {
        Self { identity: OnceLock::new(), slots: Cache::new(CACHE_SIZE) }
    }

    /// Sets the identity service; later calls have no effect.
    pub(crate) fn set_identity(&self, identity: Channel) {
        let _ = self.identity.set(TokenServiceClient::new(identity));
    }

    /// Returns the cache entry of the secret with this hash.
    pub(crate) fn slot(&self, hash: [u8; 32]) -> Slot {
        self.slots.get_with(hash, Slot::default)
    }

    /// Exchanges a secret for a token; returns `None` if identity rejects the secret.
    pub(crate) async fn exchange(&self, secret: &str) -> Result<Option<Arc<str>>, Fault> {
        let mut identity = self.identity.get().cloned().ok_or(Fault::Unauthenticated)?;
        let request = ExchangeApiTokenRequest { secret: secret.to_owned() };
        match identity.exchange_api_token(anonymous_within(TIMEOUT, request)).await {
            Ok(token) => Ok(Some(token.into_inner().token.into())),
            Err(status) => match status.code() {
                Code::Unauthenticated
                | Code::PermissionDenied
                | Code::NotFound
                | Code::InvalidArgument => Ok(None),
                _ => {
                    tracing::warn!(%status, "cannot exchange an API token");
                    Err(Fault::Unavailable("the identity service"))
                }
            },
        }
    }
}

impl Exchanged {
    pub(crate) fn rejected() -> Self {
        Self { token: None, until: Instant::now() + REJECTED_FOR }
    }
}
