//! Events between services: told when the change they tell of is committed, and only then; carried
//! by JetStream; applied once.
//!
//! A service writes an [`Event`] into its outbox with [`publish`], in the transaction of the change.
//! Its [`Relay`] carries what is committed to the service's [`Stream`]. Another service's
//! [`Consumer`] applies it with a [`Handler`], in one transaction with a row in its inbox, so that a
//! message that comes twice has its effect once. What cannot be applied becomes one of the
//! [`DeadLetters`] that an operator can replay; [`command`] has what operators do.
//!
//! ```no_run
//! use assay_events::{
//!     Consumer, Event, EventType, Handler, Nats, Received, RecordKind, Relay, Stream, publish,
//! };
//! use assay_proto::{CustomerId, Fault, TestCaseId, events::RecordChanged};
//! use assay_records::Action;
//! use assay_runtime::{Database, Runtime};
//! use sqlx::PgTransaction;
//!
//! const CATALOG: Stream = Stream::of("catalog");
//!
//! // The service that owns the records has a relay, and events in its transactions.
//! async fn create(database: &Database, customer: CustomerId) -> Result<(), Fault> {
//!     let mut tx = database.pool().begin().await?;
//!     let id = TestCaseId::new();
//!     let change = RecordChanged { source_id: id.to_string(), ..RecordChanged::default() };
//!     let created = EventType::Record(RecordKind::TestCase, Action::Created);
//!     publish(&mut tx, &Event::new(customer, id, created, &change)?).await?;
//!     Ok(tx.commit().await?)
//! }
//!
//! // A service that wants to know has a consumer.
//! struct Reactions;
//!
//! impl Handler for Reactions {
//!     async fn handle(
//!         &self,
//!         tx: &mut PgTransaction<'_>,
//!         event_type: EventType,
//!         event: &Received,
//!     ) -> Result<(), Fault> {
//!         match event_type {
//!             EventType::Record(RecordKind::TestCase, Action::Deleted) => {
//!                 let change: RecordChanged = event.data()?;
//!                 println!("deleted {}", change.source_id);
//!                 Ok(())
//!             }
//!             EventType::Record(..)
//!             | EventType::SecretsSeen
//!             | EventType::RetentionSet
//!             | EventType::Execution(_)
//!             | EventType::Reports(_) => Ok(()),
//!         }
//!     }
//! }
//!
//! fn start(runtime: &Runtime, catalog: &Database, notification: &Database, nats: &Nats) {
//!     Relay::start(runtime, catalog, nats, CATALOG);
//!     Consumer::new("notification", CATALOG).start(runtime, notification, nats, Reactions);
//! }
//! ```

mod cloud_event;
pub mod command;
mod connection;
mod consumer;
mod dead_letters;
mod event;
mod event_type;
mod nats;
mod outbox;
mod relay;
mod replay;
mod stream;
mod subject;
mod subscribers;
mod telemetry;

use sqlx::migrate::Migrator;

pub use self::{
    cloud_event::CONTENT_TYPE,
    consumer::{Consumer, Handler, Received},
    dead_letters::{DeadLetter, DeadLetters, Which},
    event::Event,
    event_type::{EventType, ExecutionAction, RecordKind, ReportsAction},
    nats::{Nats, NatsConfig},
    outbox::{is_behind, publish, publish_all, unpublished},
    relay::Relay,
    replay::{Replayed, Since, replay},
    stream::Stream,
    subject::Subject,
    subscribers::{Interest, Subscriber, Subscribers},
};

static TABLES: Migrator = sqlx::migrate!();

/// The migrations of a service with those for the outbox and the inbox before them. A service
/// numbers its own from 100.
pub fn migrations(service: &Migrator) -> Migrator {
    let all = TABLES.iter().chain(service.iter()).cloned().collect();
    let mut migrations = Migrator::with_migrations(all);
    // While a release is rolled out, replicas of the one before start on a database of the next.
    migrations.set_ignore_missing(true);
    migrations
}
