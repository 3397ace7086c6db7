//! Another server of the execution service on the same database. It runs on threads of its own, so it
//! can be killed at any time.

use std::{net::TcpListener, sync::Mutex};

use anyhow::{Context, Result};
use assay_auth::guard;
use assay_database::{Database, DatabaseConfig, PoolConfig};
use assay_execution::{Artifacts, ConsoleLinks, Queue, Quota, Reconciler, TimeLimits};
use assay_proto::DESCRIPTORS;
use assay_rpc::grpc::{self, Channel};
use assay_runtime::Runtime;

use crate::world::World;

/// Leases that expire soon and may be lost often.
const LEASES: TimeLimits = TimeLimits {
    lease_seconds: 2,
    lease_losses: 1000,
    test_minutes: 360,
    execution_hours: 168,
    grace_seconds: 900,
    queue_seconds: 300,
};

pub(crate) struct Server {
    threads: Mutex<Option<tokio::runtime::Runtime>>,
    url: String,
}

impl Server {
    pub(crate) fn start(world: &World) -> Result<Self> {
        Self::start_with(world, |runtime| Ok(Queue::local(runtime)))
    }

    /// Starts a server with this queue.
    pub(crate) fn start_with(
        world: &World,
        queue: impl FnOnce(&Runtime) -> Result<Queue>,
    ) -> Result<Self> {
        let threads =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let entered = threads.enter();
        let runtime = Runtime::new("execution");
        let database = DatabaseConfig {
            database_url: world.database_url.as_str().into(),
            pool: PoolConfig { database_connections: 8 },
            database_migrate: true,
        };
        let database = Database::open(&runtime, &database, assay_execution::migrations())?;
        let queue = queue(&runtime)?;
        Reconciler::new(database.pool(), &queue, LEASES).spawn(&runtime, &database);
        let catalog = grpc::connect(&world.catalog_url)?;
        let quota = Quota::new(database.pool(), world.quota);
        let artifacts = Artifacts::open(&runtime, database.pool(), &world.artifact_config, quota)?;
        let (db, shares) = (database.pool(), database.shares());
        let console = ConsoleLinks::new(&world.artifact_config.public, true);
        let (services, launches) =
            assay_execution::services(db, shares, catalog, queue, LEASES, artifacts, console);
        launches.spawn(&runtime, &database);
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let app = guard(services, world.verifier(), shares);
        let address = grpc::serve(&runtime, listener, app, DESCRIPTORS)?;
        drop(entered);
        Ok(Self { threads: Mutex::new(Some(threads)), url: format!("http://{address}") })
    }

    pub(crate) fn connect(&self) -> Channel {
        grpc::connect(&self.url).context("a channel").unwrap()
    }

    pub(crate) fn kill(&self) {
        if let Some(threads) = self.threads.lock().unwrap().take() {
            threads.shutdown_background();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
