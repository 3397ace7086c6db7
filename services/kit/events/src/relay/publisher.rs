//! Publishes events on JetStream and waits for acknowledgements.

use anyhow::{Context as _, ensure};
use async_nats::{
    HeaderValue,
    jetstream::{context::PublishAckFuture, message::PublishMessage},
};

use super::queue::Pending;
use crate::{Nats, Stream, cloud_event::CONTENT_TYPE};

pub(super) struct Publisher<'a> {
    nats: &'a Nats,
    stream: Stream,
    /// Whether the last attempt succeeded; `None` before the first one.
    succeeded: Option<bool>,
}

impl<'a> Publisher<'a> {
    pub(super) fn new(nats: &'a Nats, stream: Stream) -> Self {
        Self { nats, stream, succeeded: None }
    }

    /// Publishes events in order, up to the first that fails. Returns their sequences in the stream.
    pub(super) async fn publish(&mut self, events: &[Pending]) -> Vec<i64> {
        let mut published = Vec::with_capacity(events.len());
        let done = self.try_publish(events, &mut published).await;
        metrics::counter!("assay_outbox_published_total", "stream" => self.stream.name())
            .increment(published.len() as u64);
        let before = self.succeeded.replace(done.is_ok());
        match done {
            Ok(()) if before == Some(false) => {
                tracing::info!(stream = self.stream.name(), "publishing events again");
            }
            Err(error) if before.is_none() => tracing::info!(
                stream = self.stream.name(),
                error = format!("{error:#}"),
                "cannot publish events yet; retrying"
            ),
            Err(error) if before == Some(true) => tracing::warn!(
                stream = self.stream.name(),
                error = format!("{error:#}"),
                "cannot publish events; retrying"
            ),
            _ => {}
        }
        published
    }

    async fn try_publish(
        &self,
        events: &[Pending],
        published: &mut Vec<i64>,
    ) -> anyhow::Result<()> {
        // Without a connection, the client would buffer the messages and send them too late.
        ensure!(self.nats.is_connected(), "not connected to NATS");
        if self.succeeded != Some(true) {
            self.nats.ensure_stream(self.stream).await.context("cannot create the stream")?;
        }
        let mut acknowledgements = Vec::with_capacity(events.len());
        let mut last = None;
        for event in events {
            acknowledgements.push(self.send(event, last).await?);
            last = Some(event);
        }
        for acknowledgement in acknowledgements {
            published.push(i64::try_from(acknowledgement.await?.sequence)?);
        }
        Ok(())
    }

    /// Sends an event that must directly follow another one. If JetStream misses an event of a
    /// batch, it rejects those that follow, so the order is kept.
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
            // The client panics on characters that a header cannot have.
            if let Ok(value) = value.parse::<HeaderValue>() {
                message = message.header(name.as_str(), value);
            }
        }
        if let Some(last) = last {
            message = message.expected_last_message_id(last.event_id.to_string());
        }
        let subject = event.subject(self.stream);
        Ok(self.nats.jetstream().send_publish(subject, message).await?)
    }
}
