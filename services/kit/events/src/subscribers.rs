//! Who else reads what a service publishes: durable consumers of other systems, kept by an operator,
//! so that a subscriber needs no right to make one.

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

use crate::{Stream, nats::PATIENCE, subject::token};

/// How a subscriber is made known.
const MADE_FOR: &str = "A subscriber of Assay";

/// What a subscriber wants to hear of; everything, unless it says otherwise.
#[derive(Clone, Debug, Default)]
pub struct Interest {
    /// The id of one customer.
    pub customer: Option<String>,
    /// One kind of record, such as `TestReport`.
    pub noun: Option<String>,
    /// What has happened to it, such as `Finished`.
    pub action: Option<String>,
}

impl Interest {
    fn filter(&self, stream: Stream) -> String {
        if let Self { customer: None, noun: None, action: None } = self {
            return stream.subjects();
        }
        let [customer, noun, action] = [&self.customer, &self.noun, &self.action]
            .map(|word| word.as_deref().map_or_else(|| "*".to_owned(), token));
        format!("assay.{}.{customer}.{noun}.{action}", stream.service())
    }
}

/// A durable consumer of a stream.
#[derive(Clone, Debug)]
pub struct Subscriber {
    pub name: String,
    /// The subjects that it hears.
    pub filter: String,
    /// How many messages it has not seen yet.
    pub behind: u64,
    /// How many it has got and not acknowledged.
    pub in_hand: usize,
}

/// Those of one stream.
pub struct Subscribers {
    stream: Stream,
    jetstream: jetstream::Context,
}

impl Subscribers {
    pub fn of(stream: Stream, nats: Client) -> Self {
        Self { stream, jetstream: ContextBuilder::new().timeout(PATIENCE).build(nats) }
    }

    /// Adds one, which begins with the oldest message that is kept. Up to `at_once` messages are
    /// with it at a time; only one at a time comes in order whatever happens. What it does not
    /// acknowledge in time comes again.
    pub async fn add(
        &self,
        name: &str,
        interest: &Interest,
        at_once: u16,
        patience: Duration,
    ) -> anyhow::Result<Subscriber> {
        if self.info(name).await?.is_some() {
            bail!("there is a subscriber {name} already");
        }
        let config = Config {
            durable_name: Some(name.to_owned()),
            description: Some(MADE_FOR.to_owned()),
            filter_subject: interest.filter(self.stream),
            deliver_policy: DeliverPolicy::All,
            ack_policy: AckPolicy::Explicit,
            ack_wait: patience,
            max_ack_pending: at_once.into(),
            ..Config::default()
        };
        let made = self.jetstream.create_consumer_on_stream(config, self.stream.name()).await;
        let made = made.with_context(|| format!("the subscriber {name} cannot be added"))?;
        Ok(subscriber(made.cached_info()))
    }

    /// All of them, by name.
    pub async fn list(&self) -> anyhow::Result<Vec<Subscriber>> {
        let stream = self.jetstream.get_stream(self.stream.name()).await;
        let stream = stream.context("there is no stream yet; start Assay first")?;
        let infos: Vec<Info> = stream.consumers().try_collect().await?;
        let mut all: Vec<_> = infos.iter().map(subscriber).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    /// Removes one. What it has not acknowledged is not kept for it any longer.
    pub async fn remove(&self, name: &str) -> anyhow::Result<()> {
        if self.info(name).await?.is_none() {
            bail!("there is no subscriber {name}");
        }
        self.jetstream.delete_consumer_from_stream(name, self.stream.name()).await?;
        Ok(())
    }

    /// Removes those that read what is published for one customer only. What was published expires
    /// with its stream: if it were purged, some servers would have every other subscriber skip what
    /// it has not read yet (seen with 2.9).
    pub async fn remove_customer(&self, customer: CustomerId) -> anyhow::Result<()> {
        let stream = match self.jetstream.get_stream(self.stream.name()).await {
            Ok(stream) => stream,
            Err(error) if is_missing(&error) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let of_customer = format!("assay.{}.{customer}.", self.stream.service());
        let infos: Vec<Info> = stream.consumers().try_collect().await?;
        for info in infos {
            if info.config.filter_subject.starts_with(&of_customer) {
                stream.delete_consumer(&info.name).await?;
                tracing::info!(subscriber = info.name, %customer, "removed with its customer");
            }
        }
        Ok(())
    }

    async fn info(&self, name: &str) -> anyhow::Result<Option<Info>> {
        let stream = self.jetstream.get_stream(self.stream.name()).await;
        let stream = stream.context("there is no stream yet; start Assay first")?;
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
        behind: info.num_pending,
        in_hand: info.num_ack_pending,
    }
}
