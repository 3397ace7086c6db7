//! Events between services, published if and only if their change is committed, and applied once.
//!
//! A service writes an [`Event`] into its outbox with [`publish`], in the transaction of the
//! change. Its [`Relay`] publishes committed events on the service's JetStream [`Stream`]. A
//! [`Consumer`] of another service applies them with a [`Handler`], in one transaction with a row
//! in its inbox, so that a redelivered event has one effect. An event that cannot be applied
//! becomes a dead letter, which an operator can retry ([`assay_work::WorkCommand`]).
//!
//! ```no_run
//! use assay_events::{
//!     Consumer, Event, EventType, Handler, Nats, Received, RecordKind, Relay, Stream, publish,
//! };
//! use assay_proto::{CustomerId, Fault, TestCaseId, events::RecordChanged};
//! use assay_records::Action;
//! use assay_database::Database;
//! use assay_runtime::Runtime;
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
//! // A service that depends on the records has a consumer.
//! struct Reactions;
//!
//! impl Handler for Reactions {
//!     async fn handle(&self, tx: &mut PgTransaction<'_>, event: &Received) -> Result<(), Fault> {
//!         if let Some(EventType::Record(RecordKind::TestCase, Action::Deleted)) = event.event_type() {
//!             let change: RecordChanged = event.data()?;
//!             println!("deleted {}", change.source_id);
//!         }
//!         Ok(())
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
mod event_name;
mod event_type;
mod known;
mod lost_deletions;
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
    dead_letters::EVENT,
    event::Event,
    event_name::{Actions, EventPattern, Sources, Word, event_names, is_audited},
    event_type::{AlarmChange, EventType, ExecutionAction, RecordKind, ReportsAction},
    known::{
        KnownCustomer, KnownDeletion, KnownExecutions, KnownMember, KnownReports, KnownRetention,
        deleted_customers,
    },
    lost_deletions::{LostDeletions, Owner, list_live, search_again},
    nats::{EventConfig, Nats, NatsConfig},
    outbox::{publish, publish_all, unpublished, wait_for_relay},
    relay::Relay,
    replay::{Replayed, Since, replay},
    stream::Stream,
    subject::Subject,
    subscribers::{Subscriber, SubscriberFilter, Subscribers},
};

static TABLES: Migrator = sqlx::migrate!();

/// Returns the migrations of a service, preceded by those of the outbox, the inbox and
/// unfinished work. A service
/// numbers its own migrations from 100.
pub fn migrations(service: &Migrator) -> Migrator {
    let all =
        TABLES.iter().chain(assay_work::TABLES.iter()).chain(service.iter()).cloned().collect();
    let mut migrations = Migrator::with_migrations(all);
    // During an upgrade, replicas of the previous release start with a migrated database.
    migrations.set_ignore_missing(true);
    migrations
}
