//! API tokens: secrets of machines, which identity exchanges for tokens of a few minutes.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use assay_proto::{
    Fault,
    identity::{ExchangeApiTokenRequest, token_service_client::TokenServiceClient},
};
use assay_runtime::grpc::Channel;
use moka::sync::Cache;
use tokio::{sync::Mutex, time::Instant};
use tonic::Code;

use crate::caller::anonymous_within;

/// What the secret of every API token begins with.
pub const API_TOKEN_PREFIX: &str = "assay_";

/// How many secrets are remembered, right or wrong.
const REMEMBERED: u64 = 20_000;

/// How long a wrong secret is refused without asking again.
const REFUSED_FOR: Duration = Duration::from_secs(5);

/// How long before its end a token is exchanged for again.
pub(crate) const MARGIN: Duration = Duration::from_secs(30);

/// How long identity may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// Exchanges secrets, each of them once at a time.
pub(crate) struct Exchange {
    identity: OnceLock<TokenServiceClient<Channel>>,
    slots: Cache<[u8; 32], Slot>,
}

/// What is known of one secret. Who finds it locked waits for the one who asks identity.
pub(crate) type Slot = Arc<Mutex<Option<Exchanged>>>;

pub(crate) struct Exchanged {
    /// None for a secret that is none.
    pub(crate) token: Option<Arc<str>>,
    pub(crate) until: Instant,
}

impl Exchange {
    /// Knows nobody to exchange secrets with.
    pub(crate) fn new() -> Self {
        Self { identity: OnceLock::new(), slots: Cache::new(REMEMBERED) }
    }

    pub(crate) fn with(&self, identity: Channel) {
        let _ = self.identity.set(TokenServiceClient::new(identity));
    }

    /// What is known of the secret with this hash.
    pub(crate) fn slot(&self, hash: [u8; 32]) -> Slot {
        self.slots.get_with(hash, Slot::default)
    }

    /// The token for a secret; none for a secret that is none.
    pub(crate) async fn ask(&self, secret: &str) -> Result<Option<Arc<str>>, Fault> {
        let mut identity = self.identity.get().cloned().ok_or(Fault::Unauthenticated)?;
        let request = ExchangeApiTokenRequest { secret: secret.to_owned() };
        match identity.exchange_api_token(anonymous_within(PATIENCE, request)).await {
            Ok(token) => Ok(Some(token.into_inner().token.into())),
            Err(status) => match status.code() {
                Code::Unauthenticated
                | Code::PermissionDenied
                | Code::NotFound
                | Code::InvalidArgument => Ok(None),
                _ => {
                    tracing::warn!(%status, "an API token cannot be exchanged");
                    Err(Fault::Unavailable("the identity service"))
                }
            },
        }
    }
}

impl Exchanged {
    pub(crate) fn refused() -> Self {
        Self { token: None, until: Instant::now() + REFUSED_FOR }
    }
}
