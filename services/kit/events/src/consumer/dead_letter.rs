//! What could not be applied: kept for an operator, who has it delivered again once the cause is
//! mended.

use anyhow::Context as _;
use async_nats::jetstream::{message::PublishMessage, stream::LastRawMessageErrorKind};

use super::{
    Consumer,
    delivery::{ADDRESSEE, Delivery},
};
use crate::{Nats, Stream, cloud_event::CONTENT_TYPE};

const REASON: &str = "Assay-Reason";
const TRIES: &str = "Assay-Tries";
const SUBJECT: &str = "Assay-Subject";

/// The most characters of a reason that are kept.
const LONGEST_REASON: usize = 1000;

/// Keeps a message as a dead letter. It is safe when this has succeeded.
pub(super) async fn keep(
    nats: &Nats,
    consumer: &Consumer,
    delivery: &Delivery,
    reason: &str,
    tries: i32,
) -> anyhow::Result<()> {
    let (service, name) = (consumer.stream.service(), consumer.name);
    nats.ensure_stream(Stream::DEAD_LETTERS).await?;
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let letter = PublishMessage::build()
        .header("Content-Type", CONTENT_TYPE)
        .message_id(format!("{service} {} {name}", delivery.sequence))
        .header(REASON, reason.chars().take(LONGEST_REASON).map(printable).collect::<String>())
        .header(TRIES, tries.to_string())
        .header(SUBJECT, delivery.message.subject.as_str())
        .payload(delivery.message.payload.clone());
    let receipt = nats.jetstream().send_publish(subject(consumer.stream, name), letter).await?;
    receipt.await?;
    metrics::counter!("assay_dead_letters_total", "consumer" => name).increment(1);
    tracing::error!(consumer = name, subject = %delivery.message.subject, reason, "dead letter");
    Ok(())
}

/// Has all dead letters of a consumer delivered again, to this consumer only. Says how many those
/// are. One that fails again is a dead letter again, at once.
pub async fn replay_dead_letters(
    nats: &Nats,
    stream: Stream,
    consumer: &str,
) -> anyhow::Result<u64> {
    nats.ensure_stream(Stream::DEAD_LETTERS).await?;
    let letters = nats.jetstream().get_stream(Stream::DEAD_LETTERS.name()).await?;
    let last = letters.cached_info().state.last_sequence;
    let (mut replayed, mut next) = (0, 0);
    loop {
        let found = letters.get_first_raw_message_by_subject(subject(stream, consumer), next).await;
        let letter = match found {
            Ok(letter) if letter.sequence <= last => letter,
            Err(error) if error.kind() != LastRawMessageErrorKind::NoMessageFound => {
                return Err(error.into());
            }
            _ => return Ok(replayed),
        };
        let original = letter.headers.get(SUBJECT).context("a dead letter without its subject")?;
        let original = original.to_string();
        let message = PublishMessage::build()
            .header("Content-Type", CONTENT_TYPE)
            .header(ADDRESSEE, consumer)
            .message_id(format!("dead letter {}", letter.sequence))
            .payload(letter.payload);
        nats.jetstream().send_publish(original, message).await?.await?;
        letters.delete_message(letter.sequence).await?;
        next = letter.sequence + 1;
        replayed += 1;
    }
}

fn subject(stream: Stream, consumer: &str) -> String {
    format!("assay.dead-letters.{}.{consumer}", stream.service())
}
