//! Dead letters for operators: events that consumers could not apply.

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
        dead_letter::{ATTEMPTS, REASON, SUBJECT},
        delivery::ADDRESSEE,
    },
    nats::RESPONSE_TIMEOUT,
};

/// An event that a consumer could not apply.
#[derive(Clone, Debug)]
pub struct DeadLetter {
    /// Sequence number in the stream of dead letters.
    pub id: u64,
    /// Service that published the event.
    pub stream: String,
    /// Consumer that could not apply the event.
    pub consumer: String,
    /// Subject on which the event was published.
    pub subject: String,
    /// Number of attempts to apply it.
    pub attempts: String,
    pub reason: String,
    /// Time at which the consumer gave up.
    pub time: Timestamp,
    /// Id of the event; `None` if the message is not a valid event.
    pub event: Option<Uuid>,
}

/// A selection of dead letters.
#[derive(Clone, Debug)]
pub enum Selection {
    All,
    Consumer(String),
    Ids(Vec<u64>),
}

/// The dead letters of all consumers.
pub struct DeadLetters {
    jetstream: jetstream::Context,
    /// `None` if there has never been a dead letter.
    stream: Option<jetstream::stream::Stream>,
}

impl DeadLetters {
    pub async fn open(nats: Client) -> anyhow::Result<Self> {
        let jetstream = ContextBuilder::new().timeout(RESPONSE_TIMEOUT).build(nats);
        let stream = match jetstream.get_stream(Stream::DEAD_LETTERS.name()).await {
            Ok(stream) => Some(stream),
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(error) if error.code() == 404 => None,
                _ => return Err(error).context("cannot read the dead letters"),
            },
        };
        Ok(Self { jetstream, stream })
    }

    /// Calls `show` with each dead letter, oldest first. Returns their number.
    pub async fn list(
        &self,
        selection: &Selection,
        mut show: impl FnMut(DeadLetter),
    ) -> anyhow::Result<u64> {
        self.each(selection, async |letter| {
            show(DeadLetter::of(&letter));
            Ok(())
        })
        .await
    }

    /// Redelivers dead letters, each only to the consumer that failed, with all its attempts again.
    /// Returns their number.
    pub async fn replay(&self, selection: &Selection) -> anyhow::Result<u64> {
        self.each(selection, async |letter| {
            let id = letter.sequence;
            self.deliver(letter).await.with_context(|| format!("dead letter {id}"))?;
            self.remove(id).await
        })
        .await
    }

    /// Deletes dead letters. Returns their number.
    pub async fn drop(&self, selection: &Selection) -> anyhow::Result<u64> {
        self.each(selection, async |letter| self.remove(letter.sequence).await).await
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

    /// Calls `act` with each selected dead letter that exists now.
    async fn each(
        &self,
        selection: &Selection,
        mut act: impl AsyncFnMut(StreamMessage) -> anyhow::Result<()>,
    ) -> anyhow::Result<u64> {
        let filter = match selection {
            Selection::All => Stream::DEAD_LETTERS.subjects(),
            Selection::Consumer(consumer) => {
                format!("assay.{}.*.{consumer}", Stream::DEAD_LETTERS.service())
            }
            Selection::Ids(ids) => return self.each_of(ids, act).await,
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

    /// Calls `act` with each of these dead letters, or with none if one does not exist.
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
        ensure!(missing.is_empty(), "no such dead letter: {}", missing.join(", "));
        let mut count = 0;
        for id in ids {
            // An id may be given twice.
            if let Some(letter) = self.get(*id).await? {
                act(letter).await?;
                count += 1;
            }
        }
        Ok(count)
    }

    async fn get(&self, id: u64) -> anyhow::Result<Option<StreamMessage>> {
        // Sequence numbers start at 1, and the server rejects 0.
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
            attempts: header(&letter.headers, ATTEMPTS),
            reason: header(&letter.headers, REASON),
            time: Timestamp(letter.time),
            event: Received::read(&letter.payload).ok().map(|event| event.id()),
        }
    }
}

/// Returns the service and the consumer in the subject of a dead letter.
fn addressed(letter: &StreamMessage) -> (&str, &str) {
    let mut words = letter.subject.split('.').skip(2);
    (words.next().unwrap_or_default(), words.next().unwrap_or_default())
}

fn header(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).map(ToString::to_string).unwrap_or_default()
}
