//! Subscribers: durable consumers for other systems. An operator creates them, so that a subscriber
//! needs no permission to create a consumer.

use std::time::Duration;

use anyhow::{Context as _, bail};
use assay_proto::CustomerId;
use async_nats::{
    Client,
    jetstream::{
        self,
        consumer::{AckPolicy, DeliverPolicy, Info, pull::Config},
        context::{ConsumerInfoErrorKind, ContextBuilder, GetStreamError, GetStreamErrorKind},
    },
};
use futures::TryStreamExt as _;

use crate::{
    Stream,
    nats::RESPONSE_TIMEOUT,
    subject::{CLIENT, token},
};

/// Description of the consumer of a subscriber.
const DESCRIPTION: &str = "A subscriber of Assay";

/// Selects the messages of a subscriber, all by default. A kind or an action selects those of Assay, or of
/// clients alone.
#[derive(Clone, Debug, Default)]
pub struct SubscriberFilter {
    /// Id of a customer.
    pub customer: Option<String>,
    /// Whether the messages are those of clients.
    pub of_clients: bool,
    /// Kind of record, such as `TestReport`.
    pub noun: Option<String>,
    /// Action on the record, such as `Finished`.
    pub action: Option<String>,
}

impl SubscriberFilter {
    fn subject(&self, stream: Stream) -> String {
        let [customer, noun, action] = [&self.customer, &self.noun, &self.action]
            .map(|word| word.as_deref().map_or_else(|| "*".to_owned(), token));
        let service = stream.service();
        match self {
            Self { customer: None, of_clients: false, noun: None, action: None } => {
                stream.subjects()
            }
            Self { of_clients: false, noun: None, action: None, .. } => {
                format!("assay.{service}.{customer}.>")
            }
            Self { of_clients: false, .. } => {
                format!("assay.{service}.{customer}.{noun}.{action}")
            }
            Self { of_clients: true, .. } => {
                format!("assay.{service}.{customer}.{CLIENT}.{noun}.{action}")
            }
        }
    }
}

/// A durable consumer of a stream.
#[derive(Clone, Debug)]
pub struct Subscriber {
    pub name: String,
    /// Filter of its subjects.
    pub filter: String,
    /// Number of messages that have not been delivered.
    pub backlog: u64,
    /// Number of delivered messages that are not acknowledged.
    pub pending: usize,
}

/// The subscribers of one stream.
pub struct Subscribers {
    stream: Stream,
    jetstream: jetstream::Context,
}

impl Subscribers {
    pub fn of(stream: Stream, nats: Client) -> Self {
        Self { stream, jetstream: ContextBuilder::new().timeout(RESPONSE_TIMEOUT).build(nats) }
    }

    /// Adds a subscriber, which starts with the oldest message in the stream. At most `max_pending`
    /// messages are unacknowledged at a time; the order is guaranteed only with 1. A message that
    /// is not acknowledged within `ack_timeout` is redelivered.
    pub async fn add(
        &self,
        name: &str,
        filter: &SubscriberFilter,
        max_pending: u16,
        ack_timeout: Duration,
    ) -> anyhow::Result<Subscriber> {
        if self.info(name).await?.is_some() {
            bail!("the subscriber {name} already exists");
        }
        let config = Config {
            durable_name: Some(name.to_owned()),
            description: Some(DESCRIPTION.to_owned()),
            filter_subject: filter.subject(self.stream),
            deliver_policy: DeliverPolicy::All,
            ack_policy: AckPolicy::Explicit,
            ack_wait: ack_timeout,
            max_ack_pending: max_pending.into(),
            ..Config::default()
        };
        let made = self.jetstream.create_consumer_on_stream(config, self.stream.name()).await;
        let made = made.with_context(|| format!("cannot add the subscriber {name}"))?;
        Ok(subscriber(made.cached_info()))
    }

    /// Returns all subscribers, ordered by name.
    pub async fn list(&self) -> anyhow::Result<Vec<Subscriber>> {
        let stream = self.jetstream.get_stream(self.stream.name()).await;
        let stream = stream.context("the stream does not exist yet; start Assay first")?;
        let infos: Vec<Info> = stream.consumers().try_collect().await?;
        let mut all: Vec<_> = infos.iter().map(subscriber).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    /// Removes a subscriber, and with it its position in the stream.
    pub async fn remove(&self, name: &str) -> anyhow::Result<()> {
        if self.info(name).await?.is_none() {
            bail!("no such subscriber: {name}");
        }
        self.jetstream.delete_consumer_from_stream(name, self.stream.name()).await?;
        Ok(())
    }

    /// Removes the subscribers of single customers, and returns the customers that have none left. A subscriber that
    /// cannot be removed stays, and does not keep the others. Its messages stay in the stream until they expire: if
    /// they were purged, some servers (seen with 2.9) would make other subscribers skip messages that they have not
    /// read.
    pub async fn remove_customers(
        &self,
        customers: &[CustomerId],
    ) -> anyhow::Result<Vec<CustomerId>> {
        let mut removed = customers.to_vec();
        let stream = match self.jetstream.get_stream(self.stream.name()).await {
            Ok(stream) => stream,
            Err(error) if is_missing(&error) => return Ok(removed),
            Err(error) => return Err(error.into()),
        };
        let service = self.stream.service();
        let infos: Vec<Info> = stream.consumers().try_collect().await?;
        for info in infos {
            let filter = &info.config.filter_subject;
            let is_owner = |id: &&CustomerId| filter.starts_with(&format!("assay.{service}.{id}."));
            let Some(customer) = customers.iter().find(is_owner) else { continue };
            if let Err(error) = stream.delete_consumer(&info.name).await {
                removed.retain(|other| other != customer);
                tracing::info!(subscriber = info.name, %customer, %error,
                    "cannot remove a subscriber of a deleted customer; will retry");
            } else {
                tracing::info!(subscriber = info.name, %customer, "removed the subscriber of a deleted customer");
            }
        }
        Ok(removed)
    }

    async fn info(&self, name: &str) -> anyhow::Result<Option<Info>> {
        let stream = self.jetstream.get_stream(self.stream.name()).await;
        let stream = stream.context("the stream does not exist yet; start Assay first")?;
        match stream.consumer_info(name).await {
            Ok(info) => Ok(Some(info)),
            Err(error) if error.kind() == ConsumerInfoErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn is_missing(error: &GetStreamError) -> bool {
    matches!(error.kind(), GetStreamErrorKind::JetStream(error) if error.code() == 404)
}

fn subscriber(info: &Info) -> Subscriber {
    Subscriber {
        name: info.name.clone(),
        filter: info.config.filter_subject.clone(),
        backlog: info.num_pending,
        pending: info.num_ack_pending,
    }
}
