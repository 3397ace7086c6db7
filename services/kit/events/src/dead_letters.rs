//! Dead letters, as an operator sees them: what consumers could not apply.

use anyhow::{Context as _, ensure};
use assay_proto::Timestamp;
use async_nats::{
    Client, HeaderMap,
    jetstream::{
        self,
        context::{ContextBuilder, GetStreamErrorKind},
        message::{PublishMessage, StreamMessage},
        stream::LastRawMessageErrorKind,
    },
};
use uuid::Uuid;

use crate::{
    Stream,
    cloud_event::CONTENT_TYPE,
    consumer::{
        Received,
        dead_letter::{REASON, SUBJECT, TRIES},
        delivery::ADDRESSEE,
    },
    nats::PATIENCE,
};

/// One of them.
#[derive(Clone, Debug)]
pub struct DeadLetter {
    /// What it is called among the dead letters.
    pub id: u64,
    /// The service whose event it is.
    pub stream: String,
    /// Who could not apply it.
    pub consumer: String,
    /// The subject that it was published on.
    pub subject: String,
    pub tries: String,
    pub reason: String,
    /// When it was given up.
    pub time: Timestamp,
    /// Nothing if it is no event.
    pub event: Option<Uuid>,
}

/// Which of them.
#[derive(Clone, Debug)]
pub enum Which {
    All,
    /// Those of one consumer.
    Of(String),
    /// Those with these ids.
    These(Vec<u64>),
}

/// All that there are.
pub struct DeadLetters {
    jetstream: jetstream::Context,
    /// None as long as there has never been one.
    stream: Option<jetstream::stream::Stream>,
}

impl DeadLetters {
    pub async fn open(nats: Client) -> anyhow::Result<Self> {
        let jetstream = ContextBuilder::new().timeout(PATIENCE).build(nats);
        let stream = match jetstream.get_stream(Stream::DEAD_LETTERS.name()).await {
            Ok(stream) => Some(stream),
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(error) if error.code() == 404 => None,
                _ => return Err(error).context("the dead letters cannot be read"),
            },
        };
        Ok(Self { jetstream, stream })
    }

    /// Shows each of them, the oldest first. Says how many those are.
    pub async fn list(
        &self,
        which: &Which,
        mut show: impl FnMut(DeadLetter),
    ) -> anyhow::Result<u64> {
        self.each(which, async |letter| {
            show(DeadLetter::of(&letter));
            Ok(())
        })
        .await
    }

    /// Has them delivered again, to the consumers that could not apply them only. Returns how many
    /// those are. One that fails again, as often as a new one may, is a dead letter again.
    pub async fn replay(&self, which: &Which) -> anyhow::Result<u64> {
        self.each(which, async |letter| {
            let id = letter.sequence;
            self.deliver(letter).await.with_context(|| format!("dead letter {id}"))?;
            self.remove(id).await
        })
        .await
    }

    /// Removes them for good. Says how many those are.
    pub async fn drop(&self, which: &Which) -> anyhow::Result<u64> {
        self.each(which, async |letter| self.remove(letter.sequence).await).await
    }

    async fn deliver(&self, letter: StreamMessage) -> anyhow::Result<()> {
        let (_, consumer) = addressed(&letter);
        let message = PublishMessage::build()
            .header("Content-Type", CONTENT_TYPE)
            .header(ADDRESSEE, consumer)
            .message_id(format!("dead letter {}", letter.sequence));
        let subject = header(&letter.headers, SUBJECT);
        let message = message.payload(letter.payload);
        self.jetstream.send_publish(subject, message).await?.await?;
        Ok(())
    }

    async fn remove(&self, id: u64) -> anyhow::Result<()> {
        if let Some(stream) = &self.stream {
            stream.delete_message(id).await?;
        }
        Ok(())
    }

    /// Does something with each of those that are there now.
    async fn each(
        &self,
        which: &Which,
        mut act: impl AsyncFnMut(StreamMessage) -> anyhow::Result<()>,
    ) -> anyhow::Result<u64> {
        let filter = match which {
            Which::All => Stream::DEAD_LETTERS.subjects(),
            Which::Of(consumer) => format!("assay.{}.*.{consumer}", Stream::DEAD_LETTERS.service()),
            Which::These(ids) => return self.each_of(ids, act).await,
        };
        let Some(stream) = &self.stream else { return Ok(0) };
        let last = stream.cached_info().state.last_sequence;
        let (mut count, mut next) = (0, 1);
        while next <= last {
            let found = stream.get_first_raw_message_by_subject(&filter, next).await;
            let letter = match found {
                Ok(letter) if letter.sequence <= last => letter,
                Err(error) if error.kind() != LastRawMessageErrorKind::NoMessageFound => {
                    return Err(error.into());
                }
                _ => break,
            };
            next = letter.sequence + 1;
            act(letter).await?;
            count += 1;
        }
        Ok(count)
    }

    /// With none of them, if one is not there.
    async fn each_of(
        &self,
        ids: &[u64],
        mut act: impl AsyncFnMut(StreamMessage) -> anyhow::Result<()>,
    ) -> anyhow::Result<u64> {
        let mut missing = Vec::new();
        for id in ids {
            if self.get(*id).await?.is_none() {
                missing.push(id.to_string());
            }
        }
        ensure!(missing.is_empty(), "there is no dead letter {}", missing.join(", "));
        let mut count = 0;
        for id in ids {
            // One that was named twice is there once.
            if let Some(letter) = self.get(*id).await? {
                act(letter).await?;
                count += 1;
            }
        }
        Ok(count)
    }

    async fn get(&self, id: u64) -> anyhow::Result<Option<StreamMessage>> {
        // There is no message 0, and asking for it is asking for nothing.
        let Some(stream) = self.stream.as_ref().filter(|_| id > 0) else { return Ok(None) };
        match stream.get_raw_message(id).await {
            Ok(letter) => Ok(Some(letter)),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl DeadLetter {
    fn of(letter: &StreamMessage) -> Self {
        let (stream, consumer) = addressed(letter);
        Self {
            id: letter.sequence,
            stream: stream.to_owned(),
            consumer: consumer.to_owned(),
            subject: header(&letter.headers, SUBJECT),
            tries: header(&letter.headers, TRIES),
            reason: header(&letter.headers, REASON),
            time: Timestamp(letter.time),
            event: Received::read(&letter.payload).ok().map(|event| event.id()),
        }
    }
}

/// The stream and the consumer that a dead letter's subject names.
fn addressed(letter: &StreamMessage) -> (&str, &str) {
    let mut words = letter.subject.split('.').skip(2);
    (words.next().unwrap_or_default(), words.next().unwrap_or_default())
}

fn header(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).map(ToString::to_string).unwrap_or_default()
}
