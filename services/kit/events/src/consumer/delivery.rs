//! A message in our hands, until it is settled.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use async_nats::jetstream::{AckKind, Message};
use tokio::time::timeout;

use super::received::Received;
use crate::nats::PATIENCE;

/// The header of a dead letter that is delivered again: the one consumer it is for.
pub(crate) const ADDRESSEE: &str = "Assay-Consumer";

/// A message, read as an event as far as possible.
pub(super) struct Delivery {
    pub(super) message: Message,
    pub(super) event: Result<Received, serde_json::Error>,
    pub(super) sequence: u64,
    /// How many messages the stream has for the consumer after this one.
    pub(super) behind: u64,
    settled: AtomicBool,
}

impl Delivery {
    pub(super) fn new(message: Message) -> Self {
        let event = Received::read(&message.payload);
        let info = message.info().ok();
        let (sequence, behind) =
            info.map(|info| (info.stream_sequence, info.pending)).unwrap_or_default();
        Self { message, event, sequence, behind, settled: AtomicBool::new(false) }
    }

    /// Whether the message is for somebody else.
    pub(super) fn is_not_for(&self, consumer: &str) -> bool {
        let headers = self.message.headers.as_ref();
        let addressee = headers.and_then(|headers| headers.get(ADDRESSEE));
        addressee.is_some_and(|addressee| addressee.as_str() != consumer)
    }

    pub(super) async fn acknowledge(&self) {
        self.settle(AckKind::Ack).await;
    }

    /// Has the message delivered again, at once or after a while.
    pub(super) async fn give_back(&self, delay: Option<Duration>) {
        self.settle(AckKind::Nak(delay)).await;
    }

    /// Has the message never delivered again.
    pub(super) async fn terminate(&self) {
        self.settle(AckKind::Term).await;
    }

    /// Keeps JetStream from delivering the message again while there is work on it.
    pub(super) async fn progress(&self) {
        if !self.settled.load(Ordering::Relaxed) {
            self.answer(AckKind::Progress).await;
        }
    }

    async fn settle(&self, kind: AckKind) {
        if !self.settled.swap(true, Ordering::Relaxed) {
            self.answer(kind).await;
        }
    }

    /// A lost answer makes the message come again, which is harmless.
    async fn answer(&self, kind: AckKind) {
        if let Ok(Err(error)) = timeout(PATIENCE, self.message.ack_with(kind)).await {
            tracing::debug!(%error, "message not answered");
        }
    }
}
