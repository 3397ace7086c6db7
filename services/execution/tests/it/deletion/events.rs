//! Events of deletions.

use std::time::{Duration, Instant};

use anyhow::Result;
use assay_events::{
    Consumer, Event, EventConfig, EventType, Nats, NatsConfig, RecordKind, Relay, Stream, publish,
};
use assay_execution::Deletions;
use assay_proto::{CustomerId, events::RecordChanged};
use assay_records::Action;
use assay_runtime::nats::NatsServers;
use assay_testkit::{Broker, TestDatabase, eventually};
use sqlx::PgPool;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::Code;

use crate::world::World;

/// Publishes the events in a database to the stream of a service.
async fn relay(db: PgPool, nats: Nats, service: &'static str, stop: CancellationToken) {
    Relay::new(db, nats, Stream::of(service)).run(stop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_events_take_effect_within_a_second() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    let mut broker = Broker::new().await;
    broker.start().await;
    let config = NatsConfig {
        servers: NatsServers::at(broker.url().into()),
        events: EventConfig { nats_replicas: 1, event_retention_days: 1 },
    };
    let nats = Nats::connect(&config, "test").await?;
    let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
    for consumer in [
        Consumer::new("execution-projects", Stream::of("catalog")).only_action(Action::Deleted),
        Consumer::new("execution-customers", Stream::of("identity")).only("customer"),
    ] {
        tasks.spawn(consumer.run(world.db.clone(), nats.clone(), Deletions, stop.clone()));
    }
    tasks.spawn(relay(world.catalog_db().clone(), nats.clone(), "catalog", stop.clone()));
    let identity = TestDatabase::create("identity", &assay_execution::migrations()).await?;
    let identity = PgPool::connect_with(identity.options).await?;
    tasks.spawn(relay(identity.clone(), nats.clone(), "identity", stop.clone()));
    world.delete_case(&execution.test_reports[0].test_case_id).await?;
    let applied = "select count(*) from deleted_record";
    let is_applied = async || (world.count(applied).await.ok()? > 0).then_some(());
    eventually("the deletion of the test case", is_applied).await;

    let begun = Instant::now();
    world.delete_project().await?;
    let read = async || world.execution(&execution.id).await.err();
    let not_found = eventually("not found", read).await;
    let took = begun.elapsed();
    assert_eq!(not_found.code(), Code::NotFound);
    assert!(took < Duration::from_secs(1), "it took {took:?}");

    let customer = CustomerId::new();
    let changed = RecordChanged {
        source: "Customer".to_owned(),
        source_id: customer.to_string(),
        action: "Deleted".to_owned(),
        ..RecordChanged::default()
    };
    let deleted = EventType::Record(RecordKind::Customer, Action::Deleted);
    let event = Event::new(customer, customer, deleted, &changed)?;
    let mut tx = assay_database::begin(&identity).await?;
    publish(&mut tx, &event).await?;
    tx.commit().await?;
    let recorded = "select count(*) from deletion where project_id::text like '00000000-0000-%'";
    let is_recorded = async || (world.count(recorded).await.ok()? == 1).then_some(());
    eventually("a recorded deletion of the customer", is_recorded).await;
    stop.cancel();
    while tasks.join_next().await.is_some() {}
    broker.stop().await;
    Ok(())
}
