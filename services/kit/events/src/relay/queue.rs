//! The outbox, as the relay sees it.

use std::{collections::HashMap, io::ErrorKind, time::Duration};

use assay_proto::{CustomerId, Timestamp};
use serde_json::value::RawValue;
use sqlx::{
    Error, PgPool,
    postgres::{PgListener, PgPoolOptions},
    types::Json,
};
use tokio::time::timeout;
use uuid::Uuid;

use crate::{
    Stream,
    cloud_event::CloudEvent,
    connection::{self, PATIENCE, within},
};

/// Of all relays of a database, the one with this lock works.
const AT_WORK: &str = "assay outbox relay";

/// A relay with this lock sleeps and wants to be woken; see the trigger on the outbox.
const ASLEEP: &str = "assay outbox relay asleep";

/// An event that was not published yet, as far as is known.
#[derive(sqlx::FromRow)]
pub(super) struct Pending {
    id: i64,
    pub(super) event_id: Uuid,
    customer_id: CustomerId,
    record: String,
    noun: String,
    action: String,
    data: Json<Box<RawValue>>,
    pub(super) trace: Json<HashMap<String, String>>,
    created_at: Timestamp,
}

impl Pending {
    pub(super) fn subject(&self, stream: Stream) -> String {
        stream.subject(self.customer_id, &self.noun, &self.action).to_string()
    }

    pub(super) fn cloud_event(&self, stream: Stream) -> CloudEvent {
        let words = [self.noun.as_str(), &self.action];
        let (record, data) = (self.record.clone(), self.data.0.clone());
        CloudEvent {
            traceparent: self.trace.get("traceparent").cloned(),
            tracestate: self.trace.get("tracestate").filter(|state| !state.is_empty()).cloned(),
            ..CloudEvent::new(
                stream,
                self.event_id,
                self.customer_id,
                record,
                words,
                self.created_at,
                data,
            )
        }
    }
}

/// A connection of its own, which the locks belong to. Not one of the service's pool: that could
/// not be closed while it listens.
pub(super) struct Queue {
    connection: PgListener,
    asleep: bool,
}

impl Queue {
    pub(super) async fn open(pool: &PgPool) -> Result<Self, Error> {
        let options = connection::options(pool, "assay outbox relay");
        let own = PgPoolOptions::new().max_connections(1).acquire_timeout(PATIENCE);
        let own = own.max_lifetime(None).idle_timeout(None).connect_lazy_with(options);
        let mut connection = within(PATIENCE, PgListener::connect_with(&own)).await?;
        connection.eager_reconnect(false);
        within(PATIENCE, connection.listen("outbox")).await?;
        Ok(Self { connection, asleep: false })
    }

    /// Becomes the relay that works, unless another one is.
    pub(super) async fn try_lock(&mut self) -> Result<bool, Error> {
        connection::try_lock(&mut self.connection, AT_WORK).await
    }

    pub(super) async fn ping(&mut self) -> Result<(), Error> {
        let ping = sqlx::query("select 1").execute(&mut self.connection);
        within(PATIENCE, ping).await.map(drop)
    }

    /// The oldest events that are not published. They are found by their state: ids are given out
    /// in another order than transactions are committed in.
    pub(super) async fn head(&mut self, limit: i64) -> Result<Vec<Pending>, Error> {
        let events = sqlx::query_as(
            "select id, event_id, customer_id, record, noun, action, data, trace, created_at
             from outbox where published_at is null order by id limit $1",
        );
        let events = events.bind(limit).fetch_all(&mut self.connection);
        within(PATIENCE, events).await
    }

    /// Remembers that events were published.
    pub(super) async fn mark(&mut self, events: &[Pending]) -> Result<(), Error> {
        let done = sqlx::query("update outbox set published_at = now() where id = any($1)")
            .bind(events.iter().map(|event| event.id).collect::<Vec<_>>());
        within(PATIENCE, done.execute(&mut self.connection)).await?;
        self.set_asleep(false).await
    }

    /// Waits until there may be something to do.
    pub(super) async fn wait(&mut self, limit: Duration) -> Result<(), Error> {
        self.set_asleep(true).await?;
        match timeout(limit, self.connection.try_recv()).await {
            // The connection is lost, and with it the lock.
            Ok(Ok(None)) => Err(Error::Io(ErrorKind::ConnectionReset.into())),
            Ok(Err(error)) => Err(error),
            Ok(Ok(Some(_))) | Err(_) => Ok(()),
        }
    }

    async fn set_asleep(&mut self, asleep: bool) -> Result<(), Error> {
        if asleep == self.asleep {
            return Ok(());
        }
        let change = if asleep { "select pg_advisory_lock" } else { "select pg_advisory_unlock" };
        let change = sqlx::query(sqlx::AssertSqlSafe(format!("{change}(hashtextextended($1, 0))")));
        within(PATIENCE, change.bind(ASLEEP).execute(&mut self.connection)).await?;
        self.asleep = asleep;
        Ok(())
    }
}
