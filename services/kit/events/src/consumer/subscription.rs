//! The broker's side of a consumer.
//!
//! All that JetStream delivers comes to one inbox, which is listened to for as long as the
//! subscription lasts: what comes later than it was waited for is not lost.

use std::{collections::VecDeque, sync::atomic::Ordering, time::Duration};

use anyhow::{Context as _, bail, ensure};
use async_nats::{
    Message, StatusCode, Subscriber,
    jetstream::{
        self,
        consumer::{AckPolicy, DeliverPolicy, pull::Config},
    },
};
use futures::{FutureExt as _, StreamExt as _};
use tokio::time::{Instant, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{Consumer, delivery::Delivery};
use crate::{Nats, connection::PAUSE};

/// Maximum number of messages of a request.
const BATCH: usize = 200;

/// Maximum number of bytes of a request, unless a single message is larger.
const BYTES: usize = 2 * 1024 * 1024;

/// How long a request for messages stays at the server.
const EXPIRES: Duration = Duration::from_secs(1);

/// How much later than that the server's answer may come. Then the request is made again.
const GRACE: Duration = Duration::from_secs(2);

/// After how many requests without an answer the consumer is made again: the server may have lost
/// it.
const UNANSWERED: u32 = 2;

/// How soon a new connection is noticed, which requests have to be made again on.
const NOTICE: Duration = Duration::from_millis(250);

/// When a message is delivered again that nothing is heard of. What is worked on is heard of.
const ACK_WAIT: Duration = Duration::from_secs(2);

/// How often JetStream is told that there is work on a message.
const PROGRESS: Duration = Duration::from_millis(500);

/// How many messages may be with us or wait to be tried again. Beyond that nothing is delivered.
const UNSETTLED: i64 = 20_000;

/// A durable pull consumer, made again whenever it cannot be found.
pub(super) struct Subscription<'a> {
    nats: &'a Nats,
    consumer: &'a Consumer,
    inbox: String,
    messages: Option<Subscriber>,
    is_bound: bool,
    unanswered: u32,
    /// How often a connection was made so far.
    connects: u64,
    /// The number of the latest request, part of the subject of its answers.
    request: u64,
    /// How many messages it may still bring, and when it ends.
    owed: usize,
    ends: Instant,
    /// Whether the next message is larger than a request may be.
    is_large: bool,
    in_hand: VecDeque<Delivery>,
    fails: bool,
}

impl<'a> Subscription<'a> {
    pub(super) fn new(nats: &'a Nats, consumer: &'a Consumer) -> Self {
        Self {
            nats,
            consumer,
            inbox: nats.client().new_inbox(),
            messages: None,
            is_bound: false,
            unanswered: 0,
            connects: 0,
            request: 0,
            owed: 0,
            ends: Instant::now(),
            is_large: false,
            in_hand: VecDeque::new(),
            fails: false,
        }
    }

    /// The next messages, none if there are none for a while.
    pub(super) async fn next(&mut self, stop: &CancellationToken) -> Vec<Delivery> {
        let limit = Instant::now() + EXPIRES;
        while self.in_hand.is_empty() && Instant::now() < limit {
            tokio::select! {
                () = self.receive() => {}
                () = stop.cancelled() => break,
            }
        }
        let deliveries: Vec<_> = self.in_hand.drain(..).collect();
        self.measure(&deliveries);
        deliveries
    }

    /// Receives what is worked on next, and tells JetStream that there is work on all that it has
    /// delivered. Never ends.
    pub(super) async fn keep(&mut self, working: &[Delivery]) {
        let mut ticks = interval(PROGRESS);
        ticks.tick().await;
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    for delivery in working.iter().chain(&self.in_hand) {
                        delivery.progress().await;
                    }
                }
                () = self.receive() => {}
            }
        }
    }

    /// Has everything delivered again, to who consumes next.
    pub(super) async fn give_back(&mut self) {
        self.drain();
        for delivery in &self.in_hand {
            delivery.give_back(None).await;
        }
    }

    /// Receives something. What goes wrong is tried again, after a pause.
    async fn receive(&mut self) {
        match self.step().await {
            Ok(()) => self.fails = false,
            Err(error) => {
                if !std::mem::replace(&mut self.fails, true) {
                    tracing::info!(
                        consumer = self.consumer.name,
                        stream = self.consumer.stream.name(),
                        error = format!("{error:#}"),
                        "no events to be had yet"
                    );
                }
                sleep(PAUSE).await;
            }
        }
    }

    async fn step(&mut self) -> anyhow::Result<()> {
        self.drain();
        self.check_connection()?;
        if self.messages.is_none() {
            let answers = format!("{}.*", self.inbox);
            self.messages = Some(self.nats.client().subscribe(answers).await?);
        }
        if !self.is_bound {
            // If that gets no answer, a request may.
            self.is_bound = true;
            self.bind().await?;
        }
        if self.owed == 0 && self.in_hand.is_empty() {
            self.request().await?;
        }
        let Some(messages) = &mut self.messages else { return Ok(()) };
        match timeout(NOTICE, messages.next()).await {
            Ok(Some(message)) => self.take(message),
            Ok(None) => {
                self.messages = None;
                bail!("the subscription has ended")
            }
            Err(_) if self.owed > 0 && Instant::now() > self.ends => self.give_up_request(),
            Err(_) => Ok(()),
        }
    }

    /// What was asked on a connection that is lost gets no answer.
    fn check_connection(&mut self) -> anyhow::Result<()> {
        let connects = self.nats.client().statistics().connects.load(Ordering::Relaxed);
        let is_connected = self.nats.is_connected();
        if !is_connected || connects != self.connects {
            (self.owed, self.is_bound, self.connects) = (0, false, connects);
        }
        ensure!(is_connected, "not connected to NATS");
        Ok(())
    }

    /// What it brings later is taken all the same.
    fn give_up_request(&mut self) -> anyhow::Result<()> {
        self.owed = 0;
        self.unanswered += 1;
        if self.unanswered < UNANSWERED {
            return Ok(());
        }
        (self.unanswered, self.is_bound) = (0, false);
        bail!("the consumer does not answer")
    }

    /// Takes what has come already, whatever the state of requests.
    fn drain(&mut self) {
        loop {
            let Some(messages) = &mut self.messages else { return };
            match messages.next().now_or_never() {
                Some(Some(message)) => {
                    if let Err(error) = self.take(message) {
                        tracing::debug!(error = format!("{error:#}"), "no message");
                    }
                }
                Some(None) => self.messages = None,
                None => return,
            }
        }
    }

    fn take(&mut self, message: Message) -> anyhow::Result<()> {
        self.unanswered = 0;
        match message.status {
            None | Some(StatusCode::OK) => {
                self.owed = self.owed.saturating_sub(1);
                self.is_large = false;
                let context = self.nats.jetstream().clone();
                self.in_hand.push_back(Delivery::new(jetstream::Message { message, context }));
                Ok(())
            }
            Some(StatusCode::IDLE_HEARTBEAT) => Ok(()),
            Some(status) => self.end(status, &message),
        }
    }

    /// Notes the end of a request: it has expired, or cannot be carried out.
    fn end(&mut self, status: StatusCode, message: &Message) -> anyhow::Result<()> {
        let is_latest = message.subject.rsplit('.').next() == Some(&self.request.to_string());
        if !is_latest {
            return Ok(());
        }
        let why = message.description.as_deref().unwrap_or_default();
        let had_nothing = self.owed == BATCH;
        self.owed = 0;
        if status == StatusCode::TIMEOUT {
            return Ok(());
        }
        if why.contains("MaxBytes") && !self.is_large {
            self.is_large = had_nothing;
            return Ok(());
        }
        self.is_bound = false;
        bail!("{status} {why}")
    }

    async fn request(&mut self) -> anyhow::Result<()> {
        let (batch, bytes) = if self.is_large { (1, 0) } else { (BATCH, BYTES) };
        let (name, stream) = (self.consumer.name, self.consumer.stream.name());
        let wanted = serde_json::json!({
            "batch": batch, "max_bytes": bytes, "expires": EXPIRES.as_nanos(),
        });
        self.request += 1;
        let inbox = format!("{}.{}", self.inbox, self.request);
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}");
        let wanted = serde_json::to_vec(&wanted)?.into();
        self.nats.client().publish_with_reply(subject, inbox, wanted).await?;
        (self.owed, self.ends) = (batch, Instant::now() + EXPIRES + GRACE);
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "nobody counts so far")]
    fn measure(&self, deliveries: &[Delivery]) {
        if let Some(last) = deliveries.last() {
            let (consumer, stream) = (self.consumer.name, self.consumer.stream.name());
            metrics::gauge!("assay_consumer_behind", "consumer" => consumer, "stream" => stream)
                .set(last.behind as f64);
        }
    }

    /// Makes the consumer, or makes it as it should be.
    async fn bind(&self) -> anyhow::Result<()> {
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
        let made = self.nats.jetstream().create_consumer_on_stream(config, stream).await;
        made.map(drop).context("no consumer")
    }
}
