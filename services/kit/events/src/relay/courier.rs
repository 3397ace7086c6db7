//! Takes events to JetStream and waits for receipts.

use anyhow::{Context as _, ensure};
use async_nats::jetstream::{context::PublishAckFuture, message::PublishMessage};

use super::queue::Pending;
use crate::{Nats, Stream, cloud_event::CONTENT_TYPE};

pub(super) struct Courier<'a> {
    nats: &'a Nats,
    stream: Stream,
    /// Whether the last attempt went well, as far as that is known.
    well: Option<bool>,
}

impl<'a> Courier<'a> {
    pub(super) fn new(nats: &'a Nats, stream: Stream) -> Self {
        Self { nats, stream, well: None }
    }

    /// Publishes events in order, up to the first that cannot be. Says how many those are.
    pub(super) async fn carry(&mut self, events: &[Pending]) -> usize {
        let mut carried = 0;
        let done = self.try_carry(events, &mut carried).await;
        metrics::counter!("assay_outbox_published_total", "stream" => self.stream.name())
            .increment(carried as u64);
        let was_well = self.well.replace(done.is_ok());
        match done {
            Ok(()) if was_well == Some(false) => {
                tracing::info!(stream = self.stream.name(), "events can be published again");
            }
            Err(error) if was_well.is_none() => tracing::info!(
                stream = self.stream.name(),
                error = format!("{error:#}"),
                "events wait until they can be published"
            ),
            Err(error) if was_well == Some(true) => tracing::warn!(
                stream = self.stream.name(),
                error = format!("{error:#}"),
                "events cannot be published; trying again"
            ),
            _ => {}
        }
        carried
    }

    async fn try_carry(&self, events: &[Pending], carried: &mut usize) -> anyhow::Result<()> {
        // What is sent without a connection would be kept, and sent in vain when there is one.
        ensure!(self.nats.is_connected(), "not connected to NATS");
        if self.well != Some(true) {
            self.nats.ensure_stream(self.stream).await.context("no stream")?;
        }
        let mut receipts = Vec::with_capacity(events.len());
        let mut last = None;
        for event in events {
            receipts.push(self.send(event, last).await?);
            last = Some(event);
        }
        for receipt in receipts {
            receipt.await?;
            *carried += 1;
        }
        Ok(())
    }

    /// Sends an event that must come directly after another one: if JetStream misses one of a
    /// batch, it takes none of those that follow, and the order is kept.
    async fn send(
        &self,
        event: &Pending,
        last: Option<&Pending>,
    ) -> anyhow::Result<PublishAckFuture> {
        let mut message = PublishMessage::build()
            .header("Content-Type", CONTENT_TYPE)
            .message_id(event.event_id.to_string())
            .expected_stream(self.stream.name())
            .payload(serde_json::to_vec(&event.cloud_event(self.stream))?.into());
        for (name, value) in &event.trace.0 {
            message = message.header(name.as_str(), value.as_str());
        }
        if let Some(last) = last {
            message = message.expected_last_message_id(last.event_id.to_string());
        }
        let subject = event.subject(self.stream);
        Ok(self.nats.jetstream().send_publish(subject, message).await?)
    }
}
