//! The connection to NATS, and what it keeps.

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

/// How long NATS may take to answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Within this time JetStream recognises a message that it is sent again. Consumers recognise it at
/// any time; this is for other systems, and saves the way.
const DUPLICATE_WINDOW: Duration = Duration::from_mins(2);

/// How long an operator has to do something about a dead letter.
const DEAD_LETTERS_KEPT: Duration = Duration::from_hours(24 * 90);

/// How many dead letters of a consumer are kept, and how many bytes in total: the latest.
const DEAD_LETTERS_OF_CONSUMER: i64 = 10_000;
const DEAD_LETTERS_BYTES: i64 = 256 * 1024 * 1024;

/// How to reach NATS, and how events are kept there.
#[derive(clap::Args, Clone, Debug)]
pub struct NatsConfig {
    #[command(flatten)]
    pub servers: NatsServers,
    /// How many NATS servers keep each event
    #[arg(long, env = "ASSAY_NATS_REPLICAS", default_value_t = 1)]
    pub nats_replicas: usize,
    /// How many days events are kept after they were published: by NATS, for consumers that come
    /// late, and by the service, to replay what NATS has lost
    #[arg(
        long,
        env = "ASSAY_EVENT_RETENTION_DAYS",
        default_value_t = 7,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub event_retention_days: u32,
}

/// A connection to NATS, shared by all that use it. It is made in the background, and again
/// whenever it is lost.
#[derive(Clone)]
pub struct Nats {
    client: Client,
    jetstream: jetstream::Context,
    replicas: usize,
    retention: Duration,
}

impl Nats {
    /// Connects under the name of a program. Fails if the configuration is wrong; that no server
    /// can be reached is none of its concerns.
    pub async fn connect(config: &NatsConfig, name: &str) -> anyhow::Result<Self> {
        let client = connect(&config.servers, name).await?;
        Ok(Self {
            jetstream: ContextBuilder::new().timeout(PATIENCE).build(client.clone()),
            client,
            replicas: config.nats_replicas,
            retention: Duration::from_hours(24) * config.event_retention_days,
        })
    }

    /// The plain connection, for messages that are not kept.
    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    pub(crate) fn jetstream(&self) -> &jetstream::Context {
        &self.jetstream
    }

    /// How long events are kept after they were published.
    pub(crate) fn retention(&self) -> Duration {
        self.retention
    }

    /// Makes sure that the stream exists and keeps events as configured. What else an operator has
    /// set on it is left as it is.
    pub async fn ensure_stream(&self, stream: Stream) -> Result<(), CreateStreamError> {
        let wanted = stream::Config {
            name: stream.name(),
            subjects: vec![stream.subjects()],
            storage: stream::StorageType::File,
            retention: stream::RetentionPolicy::Limits,
            discard: stream::DiscardPolicy::Old,
            max_age: match stream {
                Stream::DEAD_LETTERS => DEAD_LETTERS_KEPT,
                _ => self.retention,
            },
            duplicate_window: DUPLICATE_WINDOW,
            num_replicas: self.replicas,
            allow_direct: true,
            ..Default::default()
        };
        let wanted = match stream {
            Stream::DEAD_LETTERS => stream::Config {
                max_messages_per_subject: DEAD_LETTERS_OF_CONSUMER,
                max_bytes: DEAD_LETTERS_BYTES,
                ..wanted
            },
            _ => wanted,
        };
        let found = self.jetstream.get_or_create_stream(wanted.clone()).await?;
        let found = &found.cached_info().config;
        let adapted = stream::Config {
            subjects: wanted.subjects,
            max_age: wanted.max_age,
            num_replicas: wanted.num_replicas,
            ..found.clone()
        };
        if adapted != *found {
            self.jetstream.update_stream(adapted).await.map_err(|error| {
                CreateStreamError::with_source(CreateStreamErrorKind::Response, error)
            })?;
        }
        Ok(())
    }
}
