//! A service with an outbox and one with an inbox, in one database, and a NATS server.

mod handler;
mod publish;
mod server;

use std::time::Duration;

use assay_events::{
    Consumer, EVENT, EventType, Nats, NatsConfig, RecordKind, Relay, Stream, migrations,
    unpublished,
};
use assay_proto::CustomerId;
use assay_records::Action;
use assay_testkit::{Broker, Cluster, TestDatabase, Wire, eventually};
use assay_work::DeadLetter;
use clap::Parser;
use sqlx::{
    ConnectOptions as _, PgPool, PgTransaction, SqlSafeStr,
    migrate::{Migration, MigrationType, Migrator},
};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use self::handler::{Failures, StoreNumbers};

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
        let mut tx = assay_database::begin(&self.pool).await.unwrap();
        let lock = sqlx::query("select from barrier where number = any($1) for update");
        lock.bind(&numbers).execute(&mut *tx).await.unwrap();
        tx
    }

    /// Returns the number of parked events.
    pub(crate) async fn parked(&self) -> i64 {
        let count =
            sqlx::query_scalar("select count(*) from inbox_parked where given_up_at is null");
        count.fetch_one(&self.pool).await.unwrap()
    }

    /// Returns the dead letters, oldest first.
    pub(crate) async fn dead_letters(&self) -> Vec<DeadLetter> {
        let mut letters = Vec::new();
        EVENT.list(&self.pool, None, |letter| letters.push(letter)).await.unwrap();
        letters
    }

    /// Waits for so many dead letters.
    pub(crate) async fn wait_for_dead_letters(&self, count: usize) -> Vec<DeadLetter> {
        eventually("dead letters", || async {
            let letters = self.dead_letters().await;
            (letters.len() == count).then_some(letters)
        })
        .await
    }

    /// Retries dead letters, and returns their number.
    pub(crate) async fn retry(&self, ids: Option<&[String]>) -> u64 {
        let mut connection = self.pool.acquire().await.unwrap();
        EVENT.retry(&mut connection, ids).await.unwrap()
    }

    /// Waits until a relay or consumer has stopped.
    pub(crate) async fn wait_until_stopped(&mut self) {
        let ended = tokio::time::timeout(Duration::from_secs(10), self.tasks.join_next()).await;
        ended.expect("it stops within ten seconds").unwrap().unwrap();
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
