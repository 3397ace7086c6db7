//! The broker's side of a consumer.

use std::time::Duration;

use anyhow::{bail, ensure};
use async_nats::jetstream::{
    Message,
    consumer::{
        AckPolicy, DeliverPolicy, PullConsumer,
        pull::{Batch, Config},
    },
};
use futures::StreamExt as _;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{Consumer, delivery::Delivery};
use crate::{Nats, connection::PAUSE};

/// How many messages are taken at once.
const BATCH: usize = 200;

/// How long a request for a message waits at the server. One that is lost is made again then.
const WAIT: Duration = Duration::from_secs(1);

/// When a message is delivered again that nothing is heard of: when we have given up on it for long.
const ACK_WAIT: Duration = Duration::from_mins(1);

/// How many messages may be with us or wait to be tried again. Beyond that nothing is delivered.
const UNSETTLED: i64 = 20_000;

/// A durable pull consumer, made anew whenever it cannot be found.
pub(super) struct Subscription<'a> {
    nats: &'a Nats,
    consumer: &'a Consumer,
    bound: Option<PullConsumer>,
    fails: bool,
}

impl<'a> Subscription<'a> {
    pub(super) fn new(nats: &'a Nats, consumer: &'a Consumer) -> Self {
        Self { nats, consumer, bound: None, fails: false }
    }

    /// The next messages, none if there are none for a while.
    pub(super) async fn next(&mut self, stop: &CancellationToken) -> Vec<Delivery> {
        let error = match self.pull(stop).await {
            Ok(messages) => {
                self.fails = false;
                let deliveries: Vec<_> = messages.into_iter().map(Delivery::new).collect();
                self.measure(&deliveries);
                return deliveries;
            }
            Err(error) => error,
        };
        self.bound = None;
        if !std::mem::replace(&mut self.fails, true) {
            let consumer = self.consumer.name;
            let stream = self.consumer.stream.name();
            tracing::info!(
                consumer,
                stream,
                error = format!("{error:#}"),
                "no events to be had yet"
            );
        }
        tokio::select! {
            () = sleep(PAUSE) => {}
            () = stop.cancelled() => {}
        }
        Vec::new()
    }

    /// Takes all that is there, or waits for one.
    async fn pull(&mut self, stop: &CancellationToken) -> anyhow::Result<Vec<Message>> {
        ensure!(self.nats.is_connected(), "not connected to NATS");
        if self.bound.is_none() {
            self.bound = Some(self.bind().await?);
        }
        let Some(consumer) = &self.bound else { return Ok(Vec::new()) };
        let there = collect(consumer.fetch().max_messages(BATCH).messages().await?).await?;
        if !there.is_empty() {
            return Ok(there);
        }
        let next = consumer.batch().max_messages(1).expires(WAIT).messages().await?;
        tokio::select! {
            messages = collect(next) => messages,
            () = stop.cancelled() => Ok(Vec::new()),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "nobody counts so far")]
    fn measure(&self, deliveries: &[Delivery]) {
        if let Some(last) = deliveries.last() {
            let (consumer, stream) = (self.consumer.name, self.consumer.stream.name());
            metrics::gauge!("assay_consumer_behind", "consumer" => consumer, "stream" => stream)
                .set(last.behind as f64);
        }
    }

    async fn bind(&self) -> anyhow::Result<PullConsumer> {
        let config = Config {
            durable_name: Some(self.consumer.name.to_owned()),
            filter_subject: self.consumer.filter.clone(),
            deliver_policy: DeliverPolicy::All,
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACK_WAIT,
            max_ack_pending: UNSETTLED,
            ..Config::default()
        };
        let stream = self.consumer.stream.name();
        Ok(self.nats.jetstream().create_consumer_on_stream(config, stream).await?)
    }
}

/// All messages of a batch; those before an error, if there are any.
///
/// A server always answers, be it that there is nothing; but where the consumer is gone, because the
/// server has lost it, nobody does.
async fn collect(mut batch: Batch) -> anyhow::Result<Vec<Message>> {
    let mut messages = Vec::new();
    loop {
        match timeout(WAIT * 2, batch.next()).await {
            Ok(Some(Ok(message))) => messages.push(message),
            Ok(None) => return Ok(messages),
            _ if !messages.is_empty() => return Ok(messages),
            Ok(Some(Err(error))) => return Err(anyhow::anyhow!(error)),
            Err(_) => bail!("the consumer does not answer"),
        }
    }
}
