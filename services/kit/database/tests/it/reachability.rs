//! Replicas that lose their database, alone or together.

use anyhow::Result;
use assay_database::{Database, DatabaseConfig, PoolConfig};
use assay_runtime::{
    Runtime,
    nats::{NatsServers, connect},
};
use assay_testkit::{Broker, TestDatabase, Wire, eventually};
use sqlx::migrate::Migrator;

/// A replica with a proxy before its database.
struct Replica {
    runtime: Runtime,
    wire: Wire,
}

impl Replica {
    async fn start(database: &TestDatabase, broker: &Broker) -> Result<Self> {
        let (wire, url) = Wire::to_postgres(&database.url).await?;
        let runtime = Runtime::new("assay-catalog");
        let pool = PoolConfig { database_connections: 2 };
        let config = DatabaseConfig { database_url: url.into(), pool, database_migrate: true };
        let opened = Database::open(&runtime, &config, Migrator::DEFAULT)?;
        let nats = connect(&NatsServers::at(broker.url().into()), runtime.name()).await?;
        opened.watch_reachability(&runtime, &nats);
        runtime.ready().await;
        Ok(Self { runtime, wire })
    }

    async fn wait_until(&self, is_ready: bool) {
        let expected = || async { (self.runtime.is_ready() == is_ready).then_some(()) };
        eventually(if is_ready { "readiness" } else { "no readiness" }, expected).await;
    }
}

#[tokio::test]
async fn only_a_replica_that_alone_has_lost_its_database_is_not_ready() -> Result<()> {
    let (database, mut broker) = (TestDatabase::empty().await?, Broker::new().await);
    broker.start().await;
    let one = Replica::start(&database, &broker).await?;
    let other = Replica::start(&database, &broker).await?;
    one.wire.cut();
    one.wait_until(false).await;
    assert_eq!(one.runtime.waits_for(), ["database"]);
    assert!(other.runtime.is_ready());

    // Once the others have lost it too, it is ready again.
    other.wire.cut();
    one.wait_until(true).await;
    assert!(other.runtime.is_ready());

    other.wire.restore();
    one.wait_until(false).await;
    assert!(other.runtime.is_ready());
    one.wire.restore();
    one.wait_until(true).await;
    Ok(())
}
