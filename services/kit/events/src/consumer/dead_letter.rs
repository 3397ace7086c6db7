//! Storage of dead letters; see [`crate::DeadLetters`].

use async_nats::jetstream::message::PublishMessage;

use super::{definition::Consumer, delivery::Delivery};
use crate::{Nats, Stream, cloud_event::CONTENT_TYPE};

pub(crate) const REASON: &str = "Assay-Reason";
pub(crate) const ATTEMPTS: &str = "Assay-Tries";
pub(crate) const SUBJECT: &str = "Assay-Subject";

/// Maximum number of characters of a stored reason.
const LONGEST_REASON: usize = 1000;

/// A message that becomes a dead letter.
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

/// Stores a message as a dead letter, durably when this returns.
pub(super) async fn keep(
    nats: &Nats,
    consumer: &Consumer,
    letter: Letter<'_>,
    reason: &str,
    attempts: i32,
) -> anyhow::Result<()> {
    let Letter { subject, sequence, payload } = letter;
    let (service, name) = (consumer.stream.service(), consumer.name);
    nats.ensure_stream(Stream::DEAD_LETTERS).await?;
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let letter = PublishMessage::build()
        .header("Content-Type", CONTENT_TYPE)
        .message_id(format!("{service} {sequence} {name}"))
        .header(REASON, reason.chars().take(LONGEST_REASON).map(printable).collect::<String>())
        .header(ATTEMPTS, attempts.to_string())
        .header(SUBJECT, subject)
        .payload(payload.into());
    let address = format!("assay.dead-letters.{service}.{name}");
    let acknowledgement = nats.jetstream().send_publish(address, letter).await?;
    acknowledgement.await?;
    count(name, 1);
    tracing::error!(consumer = name, subject, reason, "dead letter");
    Ok(())
}

/// Counts dead letters. The counter is exported from 0, so that alerts see the first increase.
pub(super) fn count(consumer: &'static str, letters: u64) {
    metrics::counter!("assay_dead_letters_total", "consumer" => consumer).increment(letters);
}
