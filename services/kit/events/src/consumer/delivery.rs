//! A delivered message, until it is acknowledged.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use async_nats::jetstream::{AckKind, Message};
use tokio::time::timeout;

use super::received::Received;
use crate::nats::RESPONSE_TIMEOUT;

/// A delivered message and the event in it, if it is valid.
pub(super) struct Delivery {
    pub(super) message: Message,
    pub(super) event: Result<Received, serde_json::Error>,
    pub(super) sequence: u64,
    /// Number of later messages in the stream for the consumer.
    pub(super) backlog: u64,
    /// Number of deliveries, including this one.
    pub(super) delivered: i64,
    settled: AtomicBool,
}

impl Delivery {
    pub(super) fn new(message: Message) -> Self {
        let event = Received::read(&message.payload);
        let info = message.info().ok();
        let (sequence, backlog, delivered) = info
            .map(|info| (info.stream_sequence, info.pending, info.delivered))
            .unwrap_or_default();
        Self { message, event, sequence, backlog, delivered, settled: AtomicBool::new(false) }
    }

    /// Whether the message is acknowledged, rejected or terminated.
    pub(super) fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Relaxed)
    }

    pub(super) async fn acknowledge(&self) {
        self.settle(AckKind::Ack).await;
    }

    /// Requests redelivery of the message, at once or after a delay.
    pub(super) async fn reject(&self, delay: Option<Duration>) {
        self.settle(AckKind::Nak(delay)).await;
    }

    /// Requests redelivery of the message at once, and waits until the server has processed this and
    /// all earlier acknowledgements.
    pub(super) async fn reject_confirmed(&self) {
        if !self.settled.swap(true, Ordering::Relaxed) {
            self.wait_for(self.message.double_ack_with(AckKind::Nak(None))).await;
        }
    }

    /// Prevents redelivery of the message.
    pub(super) async fn terminate(&self) {
        self.settle(AckKind::Term).await;
    }

    /// Extends the acknowledgement deadline while the message is processed.
    pub(super) async fn progress(&self) {
        if !self.is_settled() {
            self.send(AckKind::Progress).await;
        }
    }

    async fn settle(&self, kind: AckKind) {
        if !self.settled.swap(true, Ordering::Relaxed) {
            self.send(kind).await;
        }
    }

    async fn send(&self, kind: AckKind) {
        self.wait_for(self.message.ack_with(kind)).await;
    }

    /// Waits for an acknowledgement. If it is lost, the message is redelivered, which is harmless.
    async fn wait_for(&self, acknowledgement: impl Future<Output = Result<(), async_nats::Error>>) {
        if let Ok(Err(error)) = timeout(RESPONSE_TIMEOUT, acknowledgement).await {
            tracing::debug!(%error, "cannot acknowledge a message");
        }
    }
}
