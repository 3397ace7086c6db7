//! The connection to NATS, and its streams.

use std::time::Duration;

use assay_runtime::nats::{NatsServers, connect};
use async_nats::{
    Client,
    connection::State,
    jetstream::{
        self,
        context::{ContextBuilder, CreateStreamError, CreateStreamErrorKind},
        stream,
    },
};

use crate::Stream;

/// Maximum time until NATS responds.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Time in which JetStream detects duplicates. Consumers detect them at any time, so this is for
/// other systems, and saves deliveries.
const DUPLICATE_WINDOW: Duration = Duration::from_mins(2);

/// Settings of NATS and of the events stored there.
#[derive(clap::Args, Clone, Debug)]
pub struct NatsConfig {
    #[command(flatten)]
    pub servers: NatsServers,
    #[command(flatten)]
    pub events: EventConfig,
}

/// Settings of stored events.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct EventConfig {
    /// Number of NATS servers that store each event
    #[arg(long, env = "ASSAY_NATS_REPLICAS", default_value_t = 1)]
    pub nats_replicas: usize,
    /// Retention of published events in days: in NATS for late consumers, and in the database of
    /// the service for a replay after NATS has lost them
    #[arg(
        long,
        env = "ASSAY_EVENT_RETENTION_DAYS",
        default_value_t = 7,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub event_retention_days: u32,
}

/// A shared connection to NATS, which reconnects in the background whenever it is lost.
#[derive(Clone)]
pub struct Nats {
    client: Client,
    jetstream: jetstream::Context,
    replicas: usize,
    retention: Duration,
}

impl Nats {
    /// Connects in the background under the name of a program. Fails only if the configuration is
    /// not valid.
    pub async fn connect(config: &NatsConfig, name: &str) -> anyhow::Result<Self> {
        let client = connect(&config.servers, name).await?;
        Ok(Self {
            jetstream: ContextBuilder::new().timeout(RESPONSE_TIMEOUT).build(client.clone()),
            client,
            replicas: config.events.nats_replicas,
            retention: Duration::from_hours(24) * config.events.event_retention_days,
        })
    }

    /// Returns the client, for messages that are not stored.
    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    pub(crate) fn jetstream(&self) -> &jetstream::Context {
        &self.jetstream
    }

    /// Returns the retention of published events.
    pub(crate) fn retention(&self) -> Duration {
        self.retention
    }

    /// Creates the stream, or adapts its subjects, retention and replicas to the configuration.
    /// Other options of an existing stream remain as an operator has set them.
    pub async fn ensure_stream(
        &self,
        stream: Stream,
    ) -> Result<jetstream::stream::Stream, CreateStreamError> {
        let config = stream::Config {
            name: stream.name(),
            subjects: vec![stream.subjects()],
            storage: stream::StorageType::File,
            retention: stream::RetentionPolicy::Limits,
            discard: stream::DiscardPolicy::Old,
            max_age: self.retention,
            duplicate_window: DUPLICATE_WINDOW,
            num_replicas: self.replicas,
            allow_direct: true,
            ..Default::default()
        };
        let stream = self.jetstream.get_or_create_stream(config.clone()).await?;
        let found = &stream.cached_info().config;
        let adapted = stream::Config {
            subjects: config.subjects,
            max_age: config.max_age,
            num_replicas: config.num_replicas,
            ..found.clone()
        };
        if adapted != *found {
            self.jetstream.update_stream(adapted).await.map_err(|error| {
                CreateStreamError::with_source(CreateStreamErrorKind::Response, error)
            })?;
        }
        Ok(stream)
    }
}
