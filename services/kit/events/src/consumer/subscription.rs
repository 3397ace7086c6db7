//! The durable JetStream consumer of a [`Consumer`].
//!
//! JetStream delivers to one NATS inbox, which stays subscribed, so that late messages are not
//! lost. The pull consumer of the client library has an inbox for each request and drops what arrives
//! after it: on a busy NATS, such messages were delivered again only when their acknowledgement was
//! overdue, and later events waited. So the requests are made here. One request is open at a time; it is
//! bounded in messages and bytes, and a message beyond its bytes is requested alone.

use std::{collections::VecDeque, sync::atomic::Ordering, time::Duration};

use anyhow::{Context as _, bail, ensure};
use async_nats::{
    Message, StatusCode, Subscriber,
    jetstream::{
        self,
        consumer::{AckPolicy, DeliverPolicy, pull::Config},
        stream::{ConsumerError, ConsumerErrorKind},
    },
};
use futures::{FutureExt as _, StreamExt as _};
use tokio::time::{Instant, interval, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{definition::Consumer, delivery::Delivery};
use crate::{Nats, connection::RETRY_INTERVAL};

/// Maximum number of messages per request.
const BATCH: usize = 1000;

/// Maximum number of bytes per request, unless a single message is larger.
const BYTES: usize = 2 * 1024 * 1024;

/// Lifetime of a request at the server.
const EXPIRES: Duration = Duration::from_secs(1);

/// Time after the end of a request in which the server's response may still arrive.
const GRACE: Duration = Duration::from_secs(2);

/// Number of requests without a response after which the consumer is created again, since the
/// server may have lost it.
const MOST_UNANSWERED: u32 = 2;

/// Interval of checks for a new connection, on which requests must be repeated.
const CONNECTION_CHECK: Duration = Duration::from_millis(250);

/// Acknowledgement deadline. It is extended while a message is processed.
const ACK_WAIT: Duration = Duration::from_secs(2);

/// Interval in which acknowledgement deadlines are extended.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// Maximum time until the server has ended a request. A stop waits for it. Longer than a request,
/// and shorter than the acknowledgement deadline.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(1500);

/// Maximum number of unacknowledged messages.
const MOST_PENDING: i64 = 20_000;

/// A durable pull consumer, created again whenever it is missing.
pub(super) struct Subscription<'a> {
    nats: &'a Nats,
    consumer: &'a Consumer,
    inbox: String,
    messages: Option<Subscriber>,
    is_bound: bool,
    unanswered: u32,
    /// Number of connections so far.
    connects: u64,
    /// Number of the latest request, which is part of the subject of its responses.
    request: u64,
    /// Number of messages that the request may still deliver.
    expected: usize,
    request_ends: Instant,
    /// Whether the next message is larger than a request may be.
    is_large: bool,
    /// Deliveries that have not been returned yet.
    buffer: VecDeque<Delivery>,
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
            expected: 0,
            request_ends: Instant::now(),
            is_large: false,
            buffer: VecDeque::new(),
            fails: false,
        }
    }

    /// Returns the next messages, or none after a second without messages.
    pub(super) async fn next(&mut self, stop: &CancellationToken) -> Vec<Delivery> {
        let limit = Instant::now() + EXPIRES;
        while self.buffer.is_empty() && Instant::now() < limit {
            tokio::select! {
                () = self.receive() => {}
                () = stop.cancelled() => break,
            }
        }
        let deliveries: Vec<_> = self.buffer.drain(..).collect();
        self.measure(&deliveries);
        deliveries
    }

    /// Receives messages, and extends the deadlines of those received and of those in process.
    /// Never returns.
    pub(super) async fn keep_alive(&mut self, processing: &[Delivery]) {
        let mut ticks = interval(PROGRESS_INTERVAL);
        ticks.tick().await;
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    for delivery in processing.iter().chain(&self.buffer) {
                        delivery.progress().await;
                    }
                }
                () = self.receive() => {}
            }
        }
    }

    /// Requests redelivery of all messages in process and of all buffered ones, in order, to the
    /// next consumer. Waits until the server has queued them: it reads acknowledgements and requests
    /// from two queues, so that a later request could receive later messages first.
    pub(super) async fn reject_all(&mut self, processing: &[Delivery]) {
        self.close().await;
        let deliveries = processing.iter().chain(&self.buffer);
        let rejected: Vec<_> = deliveries.filter(|delivery| !delivery.is_settled()).collect();
        if let Some((last, rest)) = rejected.split_last() {
            for delivery in rest {
                delivery.reject(None).await;
            }
            last.reject_confirmed().await;
        }
    }

    /// Buffers messages until the server ends the request, as it would redeliver rejected messages to
    /// it, and deliver later ones to an inbox without a subscription.
    async fn close(&mut self) {
        let Some(mut messages) = self.messages.take() else { return };
        let limit = Instant::now() + CLOSE_TIMEOUT;
        while self.expected > 0 && self.nats.is_connected() {
            let Ok(Some(message)) = timeout_at(limit, messages.next()).await else {
                tracing::debug!("NATS does not end a request");
                return;
            };
            if let Err(error) = self.accept(message) {
                tracing::debug!(error = format!("{error:#}"), "request ended");
            }
        }
    }

    /// Performs one step. Sleeps after a failure.
    async fn receive(&mut self) {
        match self.step().await {
            Ok(()) => self.fails = false,
            Err(error) => {
                if !std::mem::replace(&mut self.fails, true) {
                    tracing::info!(
                        consumer = self.consumer.name,
                        stream = self.consumer.stream.name(),
                        error = format!("{error:#}"),
                        "cannot receive events yet; retrying"
                    );
                }
                sleep(RETRY_INTERVAL).await;
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
            // Set first, because the consumer may exist even if the response is lost.
            self.is_bound = true;
            if let Err(error) = self.bind().await {
                // The server has refused, for example because the stream does not exist yet.
                self.is_bound = !matches!(error.kind(), ConsumerErrorKind::JetStream(_));
                return Err(error).context("cannot create the consumer");
            }
        }
        if self.expected == 0 && self.buffer.is_empty() {
            self.request().await?;
        }
        let Some(messages) = &mut self.messages else { return Ok(()) };
        match timeout(CONNECTION_CHECK, messages.next()).await {
            Ok(Some(message)) => self.accept(message),
            Ok(None) => {
                self.messages = None;
                bail!("the subscription has ended")
            }
            Err(_) if self.expected > 0 && Instant::now() > self.request_ends => {
                self.give_up_request()
            }
            Err(_) => Ok(()),
        }
    }

    /// Discards the current request if its connection is lost.
    fn check_connection(&mut self) -> anyhow::Result<()> {
        let connects = self.nats.client().statistics().connects.load(Ordering::Relaxed);
        let is_connected = self.nats.is_connected();
        if !is_connected || connects != self.connects {
            (self.expected, self.is_bound, self.connects) = (0, false, connects);
        }
        ensure!(is_connected, "not connected to NATS");
        Ok(())
    }

    /// Stops waiting for a request. Messages that it still delivers are accepted.
    fn give_up_request(&mut self) -> anyhow::Result<()> {
        self.expected = 0;
        self.unanswered += 1;
        if self.unanswered < MOST_UNANSWERED {
            return Ok(());
        }
        (self.unanswered, self.is_bound) = (0, false);
        bail!("the consumer does not answer")
    }

    /// Buffers all messages that have arrived.
    fn drain(&mut self) {
        loop {
            let Some(messages) = &mut self.messages else { return };
            match messages.next().now_or_never() {
                Some(Some(message)) => {
                    if let Err(error) = self.accept(message) {
                        tracing::debug!(error = format!("{error:#}"), "request ended");
                    }
                }
                Some(None) => self.messages = None,
                None => return,
            }
        }
    }

    fn accept(&mut self, message: Message) -> anyhow::Result<()> {
        self.unanswered = 0;
        match message.status {
            None | Some(StatusCode::OK) => {
                self.expected = self.expected.saturating_sub(1);
                self.is_large = false;
                let context = self.nats.jetstream().clone();
                self.buffer.push_back(Delivery::new(jetstream::Message { message, context }));
                Ok(())
            }
            Some(StatusCode::IDLE_HEARTBEAT) => Ok(()),
            Some(status) => self.end(status, &message),
        }
    }

    /// Handles the end of a request that has expired or is refused.
    fn end(&mut self, status: StatusCode, message: &Message) -> anyhow::Result<()> {
        let is_latest = message.subject.rsplit('.').next() == Some(&self.request.to_string());
        if !is_latest {
            return Ok(());
        }
        let why = message.description.as_deref().unwrap_or_default();
        let had_nothing = self.expected == BATCH;
        self.expected = 0;
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
        let request = serde_json::json!({
            "batch": batch, "max_bytes": bytes, "expires": EXPIRES.as_nanos(),
        });
        self.request += 1;
        let inbox = format!("{}.{}", self.inbox, self.request);
        let subject = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}");
        let request = serde_json::to_vec(&request)?.into();
        self.nats.client().publish_with_reply(subject, inbox, request).await?;
        (self.expected, self.request_ends) = (batch, Instant::now() + EXPIRES + GRACE);
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "the count is below 2^52")]
    fn measure(&self, deliveries: &[Delivery]) {
        if let Some(last) = deliveries.last() {
            let (consumer, stream) = (self.consumer.name, self.consumer.stream.name());
            metrics::gauge!("assay_consumer_behind", "consumer" => consumer, "stream" => stream)
                .set(last.backlog as f64);
        }
    }

    /// Creates the consumer, or updates its configuration. One that has delivered nothing is new.
    async fn bind(&self) -> Result<(), ConsumerError> {
        let config = Config {
            durable_name: Some(self.consumer.name.to_owned()),
            filter_subject: self.consumer.filter.clone(),
            deliver_policy: DeliverPolicy::All,
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACK_WAIT,
            max_ack_pending: MOST_PENDING,
            ..Config::default()
        };
        let stream = self.consumer.stream.name();
        let bound = self.nats.jetstream().create_consumer_on_stream(config, stream).await?;
        if bound.cached_info().delivered.stream_sequence == 0 {
            self.consumer.created.notify_one();
        }
        Ok(())
    }
}
