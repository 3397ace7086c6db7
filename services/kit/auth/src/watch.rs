//! Updates a verifier with the keys and revocations of the identity service.
//!
//! Revocations are read every two seconds, and immediately after a message on NATS. The message is
//! only a hint without contents: a forged one causes a read and nothing else. While the identity
//! service is unavailable, tokens are verified with the keys and revocations read before.

use std::time::Duration;

use assay_proto::identity::token_service_client::TokenServiceClient;
use assay_rpc::grpc::{Channel, MESSAGE_LIMIT};
use assay_runtime::{Gate, Runtime, nats};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{
    Verifier,
    caller::anonymous_within,
    keys::FRESH,
    latest::{LatestRevocations, TIMEOUT},
};

/// Subject of the empty message that the identity service publishes after it has committed a
/// revocation. It is outside of `assay.identity`, whose messages are stored as events.
pub const REVOCATIONS: &str = "assay.revocations";

/// Interval between reads of the keys.
const REFRESH: Duration = Duration::from_mins(1);

/// Interval between reads of the revocations.
const POLL: Duration = Duration::from_secs(2);

/// Minimum interval between reads of the revocations, however many messages arrive.
const SHORTEST_POLL: Duration = Duration::from_millis(50);

/// Initial and maximum pause after a failed read.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

type Identity = TokenServiceClient<Channel>;

impl Verifier {
    /// Returns a verifier that is kept up to date. The program is ready when the keys and
    /// revocations have been read.
    pub fn watch(runtime: &Runtime, identity: Channel) -> Self {
        let verifier = Self::without_keys();
        verifier.revocations().mark_incomplete();
        verifier.exchange_at(identity.clone());
        let identity = Identity::new(identity).max_decoding_message_size(MESSAGE_LIMIT);

        let gate = runtime.gate("token keys");
        let keys = keep_keys(verifier.clone(), identity.clone(), gate, runtime.stopping());
        runtime.spawn("token keys", keys);
        let gate = runtime.gate("token revocations");
        let latest = LatestRevocations::of(identity);
        verifier.read_latest_with(latest.clone());
        let revocations = keep_revocations(verifier.clone(), latest, gate, runtime.stopping());
        runtime.spawn("token revocations", revocations);
        verifier
    }

    /// Returns a verifier like [`Verifier::watch`] that also listens on NATS.
    pub fn watch_with_nats(runtime: &Runtime, identity: Channel, nats: async_nats::Client) -> Self {
        let verifier = Self::watch(runtime, identity);
        verifier.listen(runtime, nats);
        verifier
    }

    /// Reads revocations as soon as a message on NATS announces new ones.
    pub fn listen(&self, runtime: &Runtime, client: async_nats::Client) {
        let this = self.clone();
        nats::subscribe(runtime, client, REVOCATIONS.to_owned(), move |_| {
            this.revocations().request_read();
        });
    }
}

async fn keep_keys(
    verifier: Verifier,
    mut identity: Identity,
    gate: Gate,
    stopping: CancellationToken,
) -> anyhow::Result<()> {
    let mut pause = PAUSES.0;
    loop {
        let read = identity.list_keys(anonymous_within(TIMEOUT, ())).await;
        let is_read = read.is_ok();
        let interval = match read {
            Ok(answer) => {
                verifier.set_keys(&answer.into_inner().jwks)?;
                gate.open();
                pause = FRESH;
                REFRESH
            }
            Err(status) => {
                tracing::debug!(%status, "cannot read the token keys");
                pause = (pause * 2).min(PAUSES.1);
                pause
            }
        };
        verifier.keys().record_read(is_read);
        let next = async {
            sleep(pause).await;
            tokio::select! {
                () = sleep(interval.saturating_sub(pause)) => {}
                () = verifier.keys().read_requested() => {}
            }
        };
        tokio::select! {
            () = next => {}
            () = stopping.cancelled() => return Ok(()),
        }
    }
}

async fn keep_revocations(
    verifier: Verifier,
    latest: LatestRevocations,
    gate: Gate,
    stopping: CancellationToken,
) -> anyhow::Result<()> {
    let mut pause = PAUSES.0;
    loop {
        let next = match latest.read(verifier.revocations()).await {
            Ok(()) => {
                verifier.revocations().mark_complete();
                gate.open();
                pause = PAUSES.0;
                POLL
            }
            Err(status) => {
                tracing::debug!(%status, "cannot read the revocations");
                pause = (pause * 2).min(PAUSES.1);
                pause
            }
        };
        let next = async {
            sleep(next.min(SHORTEST_POLL)).await;
            tokio::select! {
                () = sleep(next.saturating_sub(SHORTEST_POLL)) => {}
                () = verifier.revocations().read_requested() => {}
            }
        };
        tokio::select! {
            () = next => {}
            () = stopping.cancelled() => return Ok(()),
        }
    }
}
