//! A service with an outbox and another with an inbox, in one database.

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
    pub(crate) trouble: Trouble,
    tasks: JoinSet<()>,
}

/// What makes the handler fail.
#[derive(Clone, Default)]
pub(crate) struct Trouble(Arc<Mutex<HashSet<(i32, &'static str)>>>);

impl Trouble {
    pub(crate) fn set(&self, number: i32, trouble: &'static str) {
        self.0.lock().unwrap().insert((number, trouble));
    }

    pub(crate) fn clear(&self) {
        self.0.lock().unwrap().clear();
    }

    fn has(&self, number: i32, trouble: &'static str) -> bool {
        self.0.lock().unwrap().contains(&(number, trouble))
    }
}

/// Writes the numbers down that events bring.
struct Note(Trouble);

impl Handler for Note {
    async fn handle(
        &self,
        tx: &mut PgTransaction<'_>,
        _: EventType,
        event: &Received,
    ) -> Result<(), Fault> {
        let data: Value = event.data()?;
        let number = data.as_i64().or_else(|| data[0].as_i64()).unwrap();
        let number = i32::try_from(number).unwrap();
        let pass = sqlx::query("select from barrier where number = $1 for share");
        pass.bind(number).execute(&mut **tx).await?;
        if self.0.has(number, "endless") {
            std::future::pending::<()>().await;
        }
        let note = sqlx::query("insert into effect (number) values ($1)");
        note.bind(number).execute(&mut **tx).await?;
        assert!(!self.0.has(number, "panic"), "as it was to be");
        if self.0.has(number, "away") {
            return Err(Fault::Unavailable("something"));
        }
        if self.0.has(number, "poison") {
            return Err(Fault::internal("not\r\nto be digested"));
        }
        Ok(())
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

    /// On a cluster, of which every server keeps all events.
    pub(crate) async fn on(cluster: &Cluster) -> Self {
        let replicas = Cluster::SIZE.to_string();
        let nats = connect(&["--nats-url", &cluster.urls(), "--nats-replicas", &replicas]).await;
        Self::with(Broker::new().await, nats).await
    }

    async fn with(broker: Broker, nats: Nats) -> Self {
        let effect = "create table effect (
            place bigint generated always as identity primary key,
            number int not null
        );
        create table barrier (number int primary key);";
        let kind = MigrationType::Simple;
        let own = Migration::new(100, "effect".into(), kind, effect.into_sql_str(), false);
        let schema = migrations(&Migrator::with_migrations(vec![own]));
        let database = TestDatabase::create("events", &schema).await.unwrap();
        let pool = PgPool::connect_with(database.options).await.unwrap();
        let (trouble, tasks) = (Trouble::default(), JoinSet::new());
        Self { pool, broker, nats, customer: CustomerId::new(), trouble, tasks }
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

    /// Starts a consumer that writes down the numbers that come. It gives up a blocked event after
    /// a moment.
    pub(crate) fn consumer(&mut self) -> CancellationToken {
        let patience = Duration::from_millis(100);
        let consumer = Consumer::new("notification", CATALOG).give_up_after(patience);
        self.start(consumer, &self.pool.clone(), &self.nats.clone()).0
    }

    /// Starts a consumer that is as patient with blocked events as those of services.
    pub(crate) fn patient_consumer(&mut self) -> CancellationToken {
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
        let consumer = consumer.retry_after(Duration::from_millis(20));
        let note = Note(self.trouble.clone());
        let running = consumer.run(pool.clone(), nats.clone(), note, stop.clone());
        (stop, self.tasks.spawn(running))
    }

    /// A pool that reaches the database by a wire.
    pub(crate) async fn pool_on_a_wire(&self) -> (Wire, PgPool) {
        let url = self.pool.connect_options().to_url_lossy();
        let (wire, url) = Wire::to_postgres(url.as_str()).await.unwrap();
        (wire, PgPool::connect_lazy(&url).unwrap())
    }

    /// A connection to NATS by a wire.
    pub(crate) async fn nats_on_a_wire(&self) -> (Wire, Nats) {
        let broker = self.broker.url();
        let broker = broker.trim_start_matches("nats://").parse().unwrap();
        let wire = Wire::to(broker).await.unwrap();
        let nats = connect(&["--nats-url", &format!("nats://{}", wire.address())]).await;
        let connected = || async { nats.is_connected().then_some(()) };
        eventually("a connection to NATS", connected).await;
        (wire, nats)
    }

    /// Has events with these numbers wait for a lock, until the transaction ends.
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

    /// How many events are parked.
    pub(crate) async fn parked(&self) -> i64 {
        let count = sqlx::query_scalar("select count(*) from inbox_parked");
        count.fetch_one(&self.pool).await.unwrap()
    }

    /// Waits until a relay or consumer that was told to stop has done so.
    pub(crate) async fn ended(&mut self) {
        let ended = tokio::time::timeout(Duration::from_secs(10), self.tasks.join_next()).await;
        ended.expect("it ends within ten seconds").unwrap().unwrap();
    }

    pub(crate) fn event(&self, number: i32) -> Event {
        Event::new(self.customer, number, TEST_CASE_CREATED, &number).unwrap()
    }

    /// Tells a number of another customer.
    pub(crate) async fn tell_of(&self, customer: CustomerId, number: i32) {
        let event = Event::new(customer, number, TEST_CASE_CREATED, &number).unwrap();
        self.publish(&event).await;
    }

    pub(crate) async fn publish(&self, event: &Event) {
        let mut tx = assay_runtime::begin(&self.pool).await.unwrap();
        publish(&mut tx, event).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Tells numbers, each in a transaction of its own.
    pub(crate) async fn tell(&self, numbers: impl IntoIterator<Item = i32>) {
        for number in numbers {
            self.publish(&self.event(number)).await;
        }
    }

    /// Tells numbers, all in one transaction.
    pub(crate) async fn tell_at_once(&self, numbers: impl IntoIterator<Item = i32>) {
        let events: Vec<_> = numbers.into_iter().map(|number| self.event(number)).collect();
        let mut tx = assay_runtime::begin(&self.pool).await.unwrap();
        publish_all(&mut tx, &events).await.unwrap();
        tx.commit().await.unwrap();
    }

    pub(crate) async fn all_published(&self) {
        eventually("an empty outbox", || async {
            (unpublished(&self.pool).await.unwrap() == 0).then_some(())
        })
        .await;
    }

    /// The numbers written down, in the order of their coming.
    pub(crate) async fn effects(&self) -> Vec<i32> {
        let numbers = sqlx::query_scalar("select number from effect order by place");
        numbers.fetch_all(&self.pool).await.unwrap()
    }

    /// Waits until so many numbers are written down.
    pub(crate) async fn has_effects(&self, count: usize) -> Vec<i32> {
        eventually("all effects", || async {
            let effects = self.effects().await;
            (effects.len() >= count).then_some(effects)
        })
        .await
    }

    /// Puts a message into a stream, past the outbox.
    pub(crate) async fn send(&self, subject: &str, headers: HeaderMap, payload: &[u8]) {
        let jetstream = self.jetstream();
        let payload = payload.to_vec().into();
        let sent = jetstream.publish_with_headers(subject.to_owned(), headers, payload);
        sent.await.unwrap().await.unwrap();
    }

    pub(crate) async fn dead_letters(&self) -> DeadLetters {
        DeadLetters::open(self.nats.client().clone()).await.unwrap()
    }

    /// Has the broker lose everything.
    pub(crate) async fn lose_everything(&mut self) {
        self.broker.stop().await;
        self.broker.wipe();
        self.broker.start().await;
    }

    /// The numbers in the stream, in its order.
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

    /// How many messages a stream has, none if there is no stream.
    pub(crate) async fn messages(&self, name: &str) -> u64 {
        let stream = self.jetstream().get_stream(name).await;
        stream.map(|stream| stream.cached_info().state.messages).unwrap_or_default()
    }

    /// Has the broker refuse messages that are larger.
    pub(crate) async fn limit_messages(&self, max_message_size: i32) {
        let config = self.stream("ASSAY_CATALOG").await.cached_info().config.clone();
        let config = jetstream::stream::Config { max_message_size, ..config };
        self.jetstream().update_stream(config).await.unwrap();
    }

    /// Ends all connections to the database but our own.
    pub(crate) async fn cut_off(&self) {
        let cut = "select pg_terminate_backend(pid) from pg_stat_activity
                   where datname = current_database() and application_name like 'assay %'";
        sqlx::query(cut).execute(&self.pool).await.unwrap();
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
