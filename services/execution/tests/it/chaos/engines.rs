//! A group of engines that run tests. Any of them can be killed at any time, and some are slow.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use assay_proto::execution::{Lease, LeaseInput};
use assay_rpc::grpc::Channel;
use assay_testkit::eventually;
use serde_json::json;
use sqlx::PgPool;
use tokio::{
    sync::watch,
    task::{AbortHandle, JoinSet},
    time::timeout,
};

use crate::world::{Engine, Server, World, now, reason};

/// A report, the number of an instance, and its duration, which identifies the attempt.
type Mark = (String, i32, f64);

/// Results that engines sent, by the response of the service.
#[derive(Clone, Default)]
pub(super) struct Ledger {
    pub(super) accepted: Vec<Mark>,
    pub(super) refused: Vec<Mark>,
}

/// State that all engines share.
struct Shared {
    engine: Engine,
    db: PgPool,
    ledger: Mutex<Ledger>,
    marks: AtomicU32,
    channel: watch::Receiver<Channel>,
}

pub(super) struct Engines {
    shared: Arc<Shared>,
    /// Handles of the running engines, and the tasks of all engines.
    running: Mutex<(Vec<AbortHandle>, JoinSet<()>)>,
    server: Mutex<Server>,
    channel: watch::Sender<Channel>,
    killed: AtomicU32,
}

impl Engines {
    pub(super) fn start(world: &World, engines: usize, server: Server) -> Self {
        let (channel, current) = watch::channel(server.connect());
        let shared = Shared {
            engine: world.engine(),
            db: world.db.clone(),
            ledger: Mutex::default(),
            marks: AtomicU32::new(1),
            channel: current,
        };
        let group = Self {
            shared: Arc::new(shared),
            running: Mutex::default(),
            server: Mutex::new(server),
            channel,
            killed: AtomicU32::new(0),
        };
        for _ in 0..engines {
            group.spawn();
        }
        group
    }

    fn spawn(&self) {
        let mut running = self.running.lock().unwrap();
        let handle = running.1.spawn(work(self.shared.clone()));
        running.0.push(handle);
    }

    /// Kills the oldest engine, whatever it is doing, and starts another one.
    pub(super) fn kill_one(&self) {
        self.running.lock().unwrap().0.remove(0).abort();
        self.killed.fetch_add(1, Ordering::Relaxed);
        self.spawn();
    }

    pub(super) fn kill_server(&self) {
        self.server.lock().unwrap().kill();
    }

    /// Connects the engines with another server.
    pub(super) fn connect(&self, server: Server) {
        self.channel.send_replace(server.connect());
        *self.server.lock().unwrap() = server;
    }

    pub(super) fn stop(self) -> Ledger {
        self.running.lock().unwrap().1.abort_all();
        println!("{} engines were killed", self.killed.load(Ordering::Relaxed));
        self.shared.ledger.lock().unwrap().clone()
    }
}

/// Runs an engine until it is killed.
async fn work(shared: Arc<Shared>) {
    let mut channel = shared.channel.clone();
    loop {
        let engine = shared.engine.at(channel.borrow_and_update().clone());
        let request = LeaseInput { wait_in_sec: Some(1), ..now("", 3) };
        match engine.lease(request).await {
            Ok(leases) => {
                for lease in leases {
                    run(&shared, &lease).await;
                }
            }
            // The service is unavailable; wait for another server, but retry soon.
            Err(_) => {
                let _ = timeout(Duration::from_millis(20), channel.changed()).await;
            }
        }
    }
}

async fn has_ended(shared: &Shared, lease: &Lease) -> Option<()> {
    let ended = sqlx::query_scalar("select ended_at is not null from lease where id::text = $1");
    let ended: bool = ended.bind(&lease.id).fetch_one(&shared.db).await.ok()?;
    ended.then_some(())
}

async fn run(shared: &Shared, lease: &Lease) {
    for nr in &lease.instance_numbers {
        let mark = shared.marks.fetch_add(1, Ordering::Relaxed);
        if mark.is_multiple_of(100) {
            // The engine hangs until its lease has expired.
            eventually("the lease to be lost", || has_ended(shared, lease)).await;
        }
        let engine = shared.engine.at(shared.channel.borrow().clone());
        let seconds = f64::from(mark);
        let instance = json!([{ "InstanceNr": nr, "Result": "Passed", "DurationInSec": seconds }]);
        let sent = engine.report(&lease.id, instance).await;
        let mark = (lease.test_report_id.clone(), *nr, seconds);
        let mut ledger = shared.ledger.lock().unwrap();
        match sent {
            Ok(stored) if stored[0].duration_in_sec.to_bits() == seconds.to_bits() => {
                ledger.accepted.push(mark);
            }
            Ok(_) => ledger.refused.push(mark),
            Err(status) if reason(&status) == "lease_lost" => {
                ledger.refused.push(mark);
                return;
            }
            // The outcome is unknown: the service was killed.
            Err(_) => return,
        }
    }
    // Half of the engines do not complete the lease: the last instance ends the report anyway.
    if shared.marks.load(Ordering::Relaxed).is_multiple_of(2) {
        let engine = shared.engine.at(shared.channel.borrow().clone());
        let _ = engine.complete(&lease.id, false).await;
    }
}
