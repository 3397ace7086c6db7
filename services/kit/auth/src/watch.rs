//! Keeps a verifier informed: of identity's keys, and of what is revoked.
//!
//! Revocations are read from identity every other second, and as soon as a message on NATS says that
//! there are new ones. The message itself is not believed: whoever may publish it can cause a read
//! and nothing else. When identity is away, tokens are verified with what is known.

use std::time::Duration;

use assay_proto::identity::{ListRevocationsRequest, token_service_client::TokenServiceClient};
use assay_runtime::{
    Gate, Runtime,
    grpc::{Channel, MESSAGE_LIMIT},
    nats,
};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::{Verifier, caller::anonymous_within, keys::FRESH};

/// Where identity publishes an empty message right after the commit of a revocation. It is outside
/// of `assay.identity`, because messages there are kept as events.
pub const REVOCATIONS: &str = "assay.revocations";

/// How often the public keys are read again, without being asked to.
const REFRESH: Duration = Duration::from_mins(1);

/// How often revocations are read.
const POLL: Duration = Duration::from_secs(2);

/// How often they are read at most, however many messages say that there are new ones.
const SHORTEST_POLL: Duration = Duration::from_millis(50);

/// How long identity may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long to wait after a failure, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

type Identity = TokenServiceClient<Channel>;

impl Verifier {
    /// Keeps identity's public keys and revocations. The program is ready when they are known.
    pub fn watch(runtime: &Runtime, identity: Channel) -> Self {
        let verifier = Self::without_keys();
        verifier.revocations().expect();
        verifier.exchange_at(identity.clone());
        let identity = Identity::new(identity).max_decoding_message_size(MESSAGE_LIMIT);

        let gate = runtime.gate("token keys");
        let keys = keep_keys(verifier.clone(), identity.clone(), gate, runtime.stopping());
        runtime.spawn("token keys", keys);
        let gate = runtime.gate("token revocations");
        let revocations = keep_revocations(verifier.clone(), identity, gate, runtime.stopping());
        runtime.spawn("token revocations", revocations);
        verifier
    }

    /// As [`Verifier::watch`], with revocations read as soon as NATS says that there are new ones.
    pub fn watch_with_nats(runtime: &Runtime, identity: Channel, nats: async_nats::Client) -> Self {
        let verifier = Self::watch(runtime, identity);
        verifier.hear(runtime, nats);
        verifier
    }

    /// Reads revocations as soon as NATS says that there are new ones.
    pub fn hear(&self, runtime: &Runtime, client: async_nats::Client) {
        let this = self.clone();
        nats::hear(runtime, client, REVOCATIONS.to_owned(), move |_| this.revocations().want());
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
        let read = identity.list_keys(anonymous_within(PATIENCE, ())).await;
        let is_read = read.is_ok();
        let rest = match read {
            Ok(answer) => {
                verifier.learn(&answer.into_inner().jwks)?;
                gate.open();
                pause = FRESH;
                REFRESH
            }
            Err(status) => {
                tracing::debug!(%status, "the token keys cannot be read");
                pause = (pause * 2).min(PAUSES.1);
                pause
            }
        };
        verifier.keys().were_read(is_read);
        let next = async {
            sleep(pause).await;
            tokio::select! {
                () = sleep(rest.saturating_sub(pause)) => {}
                () = verifier.keys().wanted() => {}
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
    mut identity: Identity,
    gate: Gate,
    stopping: CancellationToken,
) -> anyhow::Result<()> {
    let mut pause = PAUSES.0;
    let mut known = 0;
    loop {
        let next = match read_revocations(&verifier, &mut identity, &mut known).await {
            Ok(()) => {
                verifier.revocations().are_known();
                gate.open();
                pause = PAUSES.0;
                POLL
            }
            Err(status) => {
                tracing::debug!(%status, "the revocations cannot be read");
                pause = (pause * 2).min(PAUSES.1);
                pause
            }
        };
        let next = async {
            sleep(next.min(SHORTEST_POLL)).await;
            tokio::select! {
                () = sleep(next.saturating_sub(SHORTEST_POLL)) => {}
                () = verifier.revocations().wanted() => {}
            }
        };
        tokio::select! {
            () = next => {}
            () = stopping.cancelled() => return Ok(()),
        }
    }
}

/// Reads what is new, part by part. Identity numbers revocations in the order in which they can be
/// read, so that none is added before one that is known.
async fn read_revocations(
    verifier: &Verifier,
    identity: &mut Identity,
    known: &mut i64,
) -> Result<(), Status> {
    loop {
        let request = ListRevocationsRequest { after: *known };
        let part = identity.list_revocations(anonymous_within(PATIENCE, request)).await?;
        let part = part.into_inner().items;
        for revocation in &part {
            verifier.revoke(revocation);
        }
        match part.last() {
            Some(last) if last.sequence > *known => *known = last.sequence,
            _ => break,
        }
        verifier.revocations().forget_old();
    }
    Ok(())
}
