//! Unpublished events in the outbox, and the connection of the relay.

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
    cloud_event::{CloudEvent, Publisher},
    connection::{self, STATEMENT_TIMEOUT, within},
};

/// Lock of the active relay of a database.
const ACTIVE: &str = "assay outbox relay";

/// Lock of a sleeping relay, which the trigger on the outbox wakes.
const ASLEEP: &str = "assay outbox relay asleep";

/// An event that is not marked as published.
#[derive(sqlx::FromRow)]
pub(super) struct Pending {
    id: i64,
    pub(super) event_id: Uuid,
    customer_id: CustomerId,
    record: String,
    noun: String,
    action: String,
    client_id: Option<Uuid>,
    data: Json<Box<RawValue>>,
    pub(super) trace: Json<HashMap<String, String>>,
    created_at: Timestamp,
}

impl Pending {
    pub(super) fn subject(&self, stream: Stream) -> String {
        self.publisher(stream).subject(self.customer_id, [&self.noun, &self.action])
    }

    fn publisher(&self, stream: Stream) -> Publisher {
        Publisher { stream, client: self.client_id }
    }

    pub(super) fn cloud_event(&self, stream: Stream) -> CloudEvent {
        let words = [self.noun.as_str(), &self.action];
        let (record, data) = (self.record.clone(), self.data.0.clone());
        CloudEvent {
            traceparent: self.trace.get("traceparent").cloned(),
            tracestate: self.trace.get("tracestate").filter(|state| !state.is_empty()).cloned(),
            ..CloudEvent::new(
                self.publisher(stream),
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

/// The outbox through a connection of its own, which holds the locks. A connection of the service's
/// pool would keep the pool from closing while it listens.
pub(super) struct Queue {
    connection: PgListener,
    asleep: bool,
}

impl Queue {
    pub(super) async fn open(pool: &PgPool) -> Result<Self, Error> {
        // Statements are planned once, perhaps while the table is nearly empty. PostgreSQL would go on
        // reading all of it, until it is analyzed.
        let by_index = [("enable_seqscan", "off")];
        let options = connection::options(pool, "assay outbox relay").options(by_index);
        let own = PgPoolOptions::new().max_connections(1).acquire_timeout(STATEMENT_TIMEOUT);
        let own = own.max_lifetime(None).idle_timeout(None).connect_lazy_with(options);
        let mut connection = within(STATEMENT_TIMEOUT, PgListener::connect_with(&own)).await?;
        connection.eager_reconnect(false);
        within(STATEMENT_TIMEOUT, connection.listen("outbox")).await?;
        Ok(Self { connection, asleep: false })
    }

    /// Becomes the active relay, unless there is one.
    pub(super) async fn try_lock(&mut self) -> Result<bool, Error> {
        connection::try_lock(&mut self.connection, ACTIVE).await
    }

    pub(super) async fn ping(&mut self) -> Result<(), Error> {
        let ping = sqlx::query("select 1").execute(&mut self.connection);
        within(STATEMENT_TIMEOUT, ping).await.map(drop)
    }

    /// Returns the oldest unpublished events: at most `limit` events and about `bytes` bytes of data
    /// as stored, but at least one. A position would not do, because transactions are committed in
    /// another order than their ids.
    pub(super) async fn head(&mut self, limit: i64, bytes: i64) -> Result<Vec<Pending>, Error> {
        let events = sqlx::query_as(
            "select id, event_id, customer_id, record, noun, action, client_id, data, trace,
                    created_at
             from (
                 select *, sum(pg_column_size(data)) over (order by id rows unbounded preceding)
                               - pg_column_size(data) as before
                 from (
                     select * from outbox where published_at is null order by id limit $1
                 ) as head
             ) as measured
             where before < $2
             order by id",
        );
        let events = events.bind(limit).bind(bytes).fetch_all(&mut self.connection);
        within(STATEMENT_TIMEOUT, events).await
    }

    /// Marks the first events as published, with these sequences.
    pub(super) async fn mark(
        &mut self,
        events: &[Pending],
        sequences: &[i64],
    ) -> Result<(), Error> {
        // The subqueries keep PostgreSQL from planning each execution for the number of events.
        let done = sqlx::query(
            "update outbox set published_at = now(), sequence = published.sequence
             from unnest((select $1::bigint[]), (select $2::bigint[])) as published (id, sequence)
             where outbox.id = published.id",
        )
        .bind(events[..sequences.len()].iter().map(|event| event.id).collect::<Vec<_>>())
        .bind(sequences);
        within(STATEMENT_TIMEOUT, done.execute(&mut self.connection)).await?;
        self.set_asleep(false).await
    }

    /// Waits for new events, at most for `limit`.
    pub(super) async fn wait(&mut self, limit: Duration) -> Result<(), Error> {
        self.set_asleep(true).await?;
        match timeout(limit, self.connection.try_recv()).await {
            // The connection and its lock are lost.
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
        within(STATEMENT_TIMEOUT, change.bind(ASLEEP).execute(&mut self.connection)).await?;
        self.asleep = asleep;
        Ok(())
    }
}
