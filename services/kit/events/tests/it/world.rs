//! A service with an outbox and one with an inbox, in one database, and a NATS server.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use assay_events::{
    Consumer, DeadLetters, Event, EventType, Handler, Nats, NatsConfig, Received, RecordKind,
    Relay, Stream, migrations, publish, publish_all, unpublished,
};
use assay_proto::{CustomerId, Fault};
use assay_records::Action;
use assay_testkit::{Broker, Cluster, TestDatabase, Wire, eventually};
use async_nats::{HeaderMap, jetstream};
use clap::Parser;
use futures::StreamExt as _;
use serde_json::Value;
use sqlx::{
    ConnectOptions as _, PgPool, PgTransaction, SqlSafeStr,
    migrate::{Migration, MigrationType, Migrator},
};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

pub(crate) const CATALOG: Stream = Stream::of("catalog");
pub(crate) const TEST_CASE_CREATED: EventType =
    EventType::Record(RecordKind::TestCase, Action::Created);

pub(crate) struct World {
    pub(crate) pool: PgPool,
    pub(crate) broker: Broker,
    pub(crate) nats: Nats,
    pub(crate) customer: CustomerId,
    pub(crate) failures: Failures,
    /// Whether the handler applies several events at once.
    pub(crate) gathers: bool,
    tasks: JoinSet<()>,
}

/// Makes the handler fail for certain numbers.
#[derive(Clone, Default)]
pub(crate) struct Failures(Arc<Mutex<HashSet<(i32, &'static str)>>>);

impl Failures {
    pub(crate) fn set(&self, number: i32, kind: &'static str) {
        self.0.lock().unwrap().insert((number, kind));
    }

    pub(crate) fn clear(&self) {
        self.0.lock().unwrap().clear();
    }

    fn has(&self, number: i32, kind: &'static str) -> bool {
        self.0.lock().unwrap().contains(&(number, kind))
    }
}

/// Stores the numbers that events carry.
struct StoreNumbers {
    failures: Failures,
    gathers: bool,
}

fn number(event: &Received) -> Result<i32, Fault> {
    let data: Value = event.data()?;
    let number = data.as_i64().or_else(|| data[0].as_i64()).unwrap();
    Ok(i32::try_from(number).unwrap())
}

impl Handler for StoreNumbers {
    async fn handle(&self, tx: &mut PgTransaction<'_>, event: &Received) -> Result<(), Fault> {
        let number = number(event)?;
        let pass = sqlx::query("select from barrier where number = $1 for share");
        pass.bind(number).execute(&mut **tx).await?;
        if self.failures.has(number, "endless") {
            std::future::pending::<()>().await;
        }
        let insert = sqlx::query("insert into effect (number) values ($1)");
        insert.bind(number).execute(&mut **tx).await?;
        assert!(!self.failures.has(number, "panic"), "a panic of the handler");
        if self.failures.has(number, "away") {
            return Err(Fault::Unavailable("something"));
        }
        if self.failures.has(number, "poison") {
            return Err(Fault::internal("not\r\ndigestible"));
        }
        Ok(())
    }

    async fn handle_all(
        &self,
        tx: &mut PgTransaction<'_>,
        events: &[&Received],
    ) -> Result<bool, Fault> {
        if !self.gathers {
            return Ok(false);
        }
        let numbers: Result<Vec<_>, Fault> = events.iter().map(|event| number(event)).collect();
        let numbers = numbers?;
        let insert = sqlx::query("insert into effect (number) select unnest($1::int[])");
        insert.bind(&numbers).execute(&mut **tx).await?;
        if numbers.iter().any(|number| self.failures.has(*number, "poison")) {
            return Err(Fault::internal("some event is not digestible"));
        }
        Ok(true)
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        let mut world = Self::without_broker().await;
        world.broker.start().await;
        let connected = || async { world.nats.is_connected().then_some(()) };
        eventually("a connection to NATS", connected).await;
        world
    }

    pub(crate) async fn without_broker() -> Self {
        let broker = Broker::new().await;
        let nats = connect(&["--nats-url", &broker.url()]).await;
        Self::with(broker, nats).await
    }

    /// Uses a cluster whose servers all store every event.
    pub(crate) async fn on(cluster: &Cluster) -> Self {
        let replicas = Cluster::SIZE.to_string();
        let nats = connect(&["--nats-url", &cluster.urls(), "--nats-replicas", &replicas]).await;
        Self::with(Broker::new().await, nats).await
    }

    async fn with(broker: Broker, nats: Nats) -> Self {
        let effect = "create table effect (
            position bigint generated always as identity primary key,
            number int not null
        );
        create table barrier (number int primary key);";
        let kind = MigrationType::Simple;
        let own = Migration::new(100, "effect".into(), kind, effect.into_sql_str(), false);
        let schema = migrations(&Migrator::with_migrations(vec![own]));
        let database = TestDatabase::create("events", &schema).await.unwrap();
        let pool = PgPool::connect_with(database.options).await.unwrap();
        let (failures, tasks) = (Failures::default(), JoinSet::new());
        Self { pool, broker, nats, customer: CustomerId::new(), failures, gathers: false, tasks }
    }

    /// Starts a relay. It runs until the token is cancelled.
    pub(crate) fn relay(&mut self) -> CancellationToken {
        self.relay_on(&self.pool.clone())
    }

    pub(crate) fn relay_on(&mut self, pool: &PgPool) -> CancellationToken {
        let stop = CancellationToken::new();
        let relay = Relay::new(pool.clone(), self.nats.clone(), CATALOG);
        self.tasks.spawn(relay.run(stop.clone()));
        stop
    }

    /// Starts a consumer that soon gives up blocked events.
    pub(crate) fn consumer(&mut self) -> CancellationToken {
        let limit = Duration::from_millis(100);
        let consumer = Consumer::new("notification", CATALOG).give_up_after(limit);
        self.start(consumer, &self.pool.clone(), &self.nats.clone()).0
    }

    /// Starts a consumer that keeps blocked events as long as those of services.
    pub(crate) fn default_consumer(&mut self) -> CancellationToken {
        let (pool, nats) = (self.pool.clone(), self.nats.clone());
        self.start(Consumer::new("notification", CATALOG), &pool, &nats).0
    }

    /// Starts a consumer that can be killed.
    pub(crate) fn consumer_on(&mut self, pool: &PgPool, nats: &Nats) -> AbortHandle {
        self.start(Consumer::new("notification", CATALOG), pool, nats).1
    }

    fn start(
        &mut self,
        consumer: Consumer,
        pool: &PgPool,
        nats: &Nats,
    ) -> (CancellationToken, AbortHandle) {
        let stop = CancellationToken::new();
        let consumer = consumer.retry_after(Duration::from_millis(5));
        let handler = StoreNumbers { failures: self.failures.clone(), gathers: self.gathers };
        let running = consumer.run(pool.clone(), nats.clone(), handler, stop.clone());
        (stop, self.tasks.spawn(running))
    }

    /// Returns a pool that connects through a proxy.
    pub(crate) async fn proxied_pool(&self) -> (Wire, PgPool) {
        let url = self.pool.connect_options().to_url_lossy();
        let (wire, url) = Wire::to_postgres(url.as_str()).await.unwrap();
        (wire, PgPool::connect_lazy(&url).unwrap())
    }

    /// Returns a connection to NATS through a proxy.
    pub(crate) async fn proxied_nats(&self) -> (Wire, Nats) {
        let broker = self.broker.url();
        let broker = broker.trim_start_matches("nats://").parse().unwrap();
        let wire = Wire::to(broker).await.unwrap();
        let nats = connect(&["--nats-url", &format!("nats://{}", wire.address())]).await;
        let connected = || async { nats.is_connected().then_some(()) };
        eventually("a connection to NATS", connected).await;
        (wire, nats)
    }

    /// Makes events with these numbers wait for a lock until the transaction ends.
    pub(crate) async fn block(
        &self,
        numbers: impl IntoIterator<Item = i32>,
    ) -> PgTransaction<'static> {
        let numbers: Vec<_> = numbers.into_iter().collect();
        let add = sqlx::query("insert into barrier select unnest($1::int[])").bind(&numbers);
        add.execute(&self.pool).await.unwrap();
        let mut tx = assay_runtime::begin(&self.pool).await.unwrap();
        let lock = sqlx::query("select from barrier where number = any($1) for update");
        lock.bind(&numbers).execute(&mut *tx).await.unwrap();
        tx
    }

    /// Returns the number of parked events.
    pub(crate) async fn parked(&self) -> i64 {
        let count = sqlx::query_scalar("select count(*) from inbox_parked");
        count.fetch_one(&self.pool).await.unwrap()
    }

    /// Waits until a relay or consumer has stopped.
    pub(crate) async fn wait_until_stopped(&mut self) {
        let ended = tokio::time::timeout(Duration::from_secs(10), self.tasks.join_next()).await;
        ended.expect("it stops within ten seconds").unwrap().unwrap();
    }

    pub(crate) fn event(&self, number: i32) -> Event {
        Event::new(self.customer, number, TEST_CASE_CREATED, &number).unwrap()
    }

    /// Publishes the number for another customer.
    pub(crate) async fn publish_for(&self, customer: CustomerId, number: i32) {
        let event = Event::new(customer, number, TEST_CASE_CREATED, &number).unwrap();
        self.publish(&event).await;
    }

    pub(crate) async fn publish(&self, event: &Event) {
        let mut tx = assay_runtime::begin(&self.pool).await.unwrap();
        publish(&mut tx, event).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Publishes numbers, each in a transaction of its own.
    pub(crate) async fn publish_each(&self, numbers: impl IntoIterator<Item = i32>) {
        for number in numbers {
            self.publish(&self.event(number)).await;
        }
    }

    /// Publishes numbers in one transaction.
    pub(crate) async fn publish_together(&self, numbers: impl IntoIterator<Item = i32>) {
        self.publish_all(numbers.into_iter().map(|number| self.event(number)).collect()).await;
    }

    /// Publishes changes of one record in one transaction.
    pub(crate) async fn publish_of_record(&self, numbers: impl IntoIterator<Item = i32>) {
        let event = |number| Event::new(self.customer, "TC-1", TEST_CASE_CREATED, &number).unwrap();
        self.publish_all(numbers.into_iter().map(event).collect()).await;
    }

    async fn publish_all(&self, events: Vec<Event>) {
        let mut tx = assay_runtime::begin(&self.pool).await.unwrap();
        publish_all(&mut tx, &events).await.unwrap();
        tx.commit().await.unwrap();
    }

    pub(crate) async fn wait_until_published(&self) {
        eventually("an empty outbox", || async {
            (unpublished(&self.pool).await.unwrap() == 0).then_some(())
        })
        .await;
    }

    /// Returns the stored numbers in the order of their events.
    pub(crate) async fn effects(&self) -> Vec<i32> {
        let numbers = sqlx::query_scalar("select number from effect order by position");
        numbers.fetch_all(&self.pool).await.unwrap()
    }

    /// Waits until so many numbers are stored.
    pub(crate) async fn wait_for_effects(&self, count: usize) -> Vec<i32> {
        eventually("all effects", || async {
            let effects = self.effects().await;
            (effects.len() >= count).then_some(effects)
        })
        .await
    }

    /// Publishes a message without the outbox.
    pub(crate) async fn send(&self, subject: &str, headers: HeaderMap, payload: &[u8]) {
        let jetstream = self.jetstream();
        let payload = payload.to_vec().into();
        let sent = jetstream.publish_with_headers(subject.to_owned(), headers, payload);
        sent.await.unwrap().await.unwrap();
    }

    pub(crate) async fn dead_letters(&self) -> DeadLetters {
        DeadLetters::open(self.nats.client().clone()).await.unwrap()
    }

    /// Removes all data of the NATS server.
    pub(crate) async fn lose_messages(&mut self) {
        self.broker.stop().await;
        self.broker.wipe();
        self.broker.start().await;
    }

    /// Returns the numbers in the stream, in order.
    pub(crate) async fn published(&self) -> Vec<i32> {
        let stream = self.stream("ASSAY_CATALOG").await;
        let count = stream.cached_info().state.messages;
        let config = jetstream::consumer::pull::OrderedConfig::default();
        let messages = stream.create_consumer(config).await.unwrap().messages().await.unwrap();
        let numbers = messages.take(usize::try_from(count).unwrap()).map(|message| {
            let event: Value = serde_json::from_slice(&message.unwrap().payload).unwrap();
            i32::try_from(event["data"].as_i64().unwrap()).unwrap()
        });
        numbers.collect().await
    }

    fn jetstream(&self) -> jetstream::Context {
        jetstream::new(self.nats.client().clone())
    }

    pub(crate) async fn stream(&self, name: &str) -> jetstream::stream::Stream {
        self.jetstream().get_stream(name).await.unwrap()
    }

    /// Returns the number of messages in a stream, 0 if the stream does not exist.
    pub(crate) async fn messages(&self, name: &str) -> u64 {
        let stream = self.jetstream().get_stream(name).await;
        stream.map(|stream| stream.cached_info().state.messages).unwrap_or_default()
    }

    /// Makes the stream reject larger messages.
    pub(crate) async fn limit_messages(&self, max_message_size: i32) {
        let config = self.stream("ASSAY_CATALOG").await.cached_info().config.clone();
        let config = jetstream::stream::Config { max_message_size, ..config };
        self.jetstream().update_stream(config).await.unwrap();
    }

    /// Terminates the database connections of relays and consumers.
    pub(crate) async fn terminate_connections(&self) {
        self.terminate("assay %").await;
    }

    /// Terminates the database connections of applications whose name is like this pattern.
    pub(crate) async fn terminate(&self, application: &str) {
        let cut = "select pg_terminate_backend(pid) from pg_stat_activity
                   where datname = current_database() and application_name like $1";
        sqlx::query(cut).bind(application).execute(&self.pool).await.unwrap();
    }

    /// Waits until the handler of a consumer waits for a lock.
    pub(crate) async fn wait_until_blocked(&self) {
        let waiting = "select count(*) from pg_stat_activity
                       where datname = current_database() and application_name = 'assay consumer'
                         and wait_event_type = 'Lock'";
        eventually("a handler that waits for a lock", || async {
            let waiting: i64 = sqlx::query_scalar(waiting).fetch_one(&self.pool).await.unwrap();
            (waiting > 0).then_some(())
        })
        .await;
    }
}

async fn connect(options: &[&str]) -> Nats {
    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        nats: NatsConfig,
    }
    let cli = Cli::parse_from([&["test"], options].concat());
    Nats::connect(&cli.nats, "test").await.unwrap()
}
