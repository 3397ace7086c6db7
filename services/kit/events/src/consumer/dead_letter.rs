//! What could not be applied is kept for an operator; see [`crate::DeadLetters`].

use async_nats::jetstream::message::PublishMessage;

use super::{Consumer, delivery::Delivery};
use crate::{Nats, Stream, cloud_event::CONTENT_TYPE};

pub(crate) const REASON: &str = "Assay-Reason";
pub(crate) const TRIES: &str = "Assay-Tries";
pub(crate) const SUBJECT: &str = "Assay-Subject";

/// The most characters of a reason that are kept.
const LONGEST_REASON: usize = 1000;

/// A message as it was delivered.
pub(super) struct Letter<'a> {
    pub(super) subject: &'a str,
    pub(super) sequence: u64,
    pub(super) payload: Vec<u8>,
}

impl<'a> From<&'a Delivery> for Letter<'a> {
    fn from(delivery: &'a Delivery) -> Self {
        let Delivery { message, sequence, .. } = delivery;
        let payload = message.payload.to_vec();
        Self { subject: &message.subject, sequence: *sequence, payload }
    }
}

/// Keeps a message as a dead letter. It is safe when this has succeeded.
pub(super) async fn keep(
    nats: &Nats,
    consumer: &Consumer,
    letter: Letter<'_>,
    reason: &str,
    tries: i32,
) -> anyhow::Result<()> {
    let Letter { subject, sequence, payload } = letter;
    let (service, name) = (consumer.stream.service(), consumer.name);
    nats.ensure_stream(Stream::DEAD_LETTERS).await?;
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let letter = PublishMessage::build()
        .header("Content-Type", CONTENT_TYPE)
        .message_id(format!("{service} {sequence} {name}"))
        .header(REASON, reason.chars().take(LONGEST_REASON).map(printable).collect::<String>())
        .header(TRIES, tries.to_string())
        .header(SUBJECT, subject)
        .payload(payload.into());
    let address = format!("assay.dead-letters.{service}.{name}");
    let receipt = nats.jetstream().send_publish(address, letter).await?;
    receipt.await?;
    count(name, 1);
    tracing::error!(consumer = name, subject, reason, "dead letter");
    Ok(())
}

/// Counts dead letters. A consumer begins with none: an alert sees only what grows.
pub(super) fn count(consumer: &'static str, letters: u64) {
    metrics::counter!("assay_dead_letters_total", "consumer" => consumer).increment(letters);
}
