//! Engines at work. Any of them may be killed at any time, and some are slow.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use assay_proto::execution::{Lease, LeaseInput};
use assay_runtime::grpc::Channel;
use assay_testkit::eventually;
use serde_json::json;
use sqlx::PgPool;
use tokio::{
    sync::watch,
    task::{AbortHandle, JoinSet},
    time::timeout,
};

use crate::world::{Engine, Server, World, now, reason};

/// A report, the number of an instance, and its duration, by which the attempt is known.
type Mark = (String, i32, f64);

/// What engines know of what they have sent.
#[derive(Clone, Default)]
pub(super) struct Ledger {
    pub(super) accepted: Vec<Mark>,
    pub(super) refused: Vec<Mark>,
}

/// What all engines share.
struct Common {
    engine: Engine,
    db: PgPool,
    ledger: Mutex<Ledger>,
    marks: AtomicU32,
    channel: watch::Receiver<Channel>,
}

pub(super) struct Crew {
    common: Arc<Common>,
    /// The engines that live, and all that ever lived.
    living: Mutex<(Vec<AbortHandle>, JoinSet<()>)>,
    server: Mutex<Server>,
    channel: watch::Sender<Channel>,
    killed: AtomicU32,
}

impl Crew {
    pub(super) fn muster(world: &World, engines: usize, server: Server) -> Self {
        let (channel, current) = watch::channel(server.connect());
        let common = Common {
            engine: world.engine(),
            db: world.db.clone(),
            ledger: Mutex::default(),
            marks: AtomicU32::new(1),
            channel: current,
        };
        let crew = Self {
            common: Arc::new(common),
            living: Mutex::default(),
            server: Mutex::new(server),
            channel,
            killed: AtomicU32::new(0),
        };
        for _ in 0..engines {
            crew.recruit();
        }
        crew
    }

    fn recruit(&self) {
        let mut living = self.living.lock().unwrap();
        let handle = living.1.spawn(work(self.common.clone()));
        living.0.push(handle);
    }

    /// Kills the engine that has lived longest, in the middle of whatever it does. Another one
    /// takes its place.
    pub(super) fn kill_one(&self) {
        self.living.lock().unwrap().0.remove(0).abort();
        self.killed.fetch_add(1, Ordering::Relaxed);
        self.recruit();
    }

    pub(super) fn kill_server(&self) {
        self.server.lock().unwrap().kill();
    }

    pub(super) fn serve(&self, server: Server) {
        self.channel.send_replace(server.connect());
        *self.server.lock().unwrap() = server;
    }

    pub(super) fn dismiss(self) -> Ledger {
        self.living.lock().unwrap().1.abort_all();
        println!("{} engines were killed", self.killed.load(Ordering::Relaxed));
        self.common.ledger.lock().unwrap().clone()
    }
}

/// An engine, until it is killed.
async fn work(common: Arc<Common>) {
    let mut channel = common.channel.clone();
    loop {
        let engine = common.engine.at(channel.borrow_and_update().clone());
        let wanted = LeaseInput { wait_in_sec: Some(1), ..now("", 3) };
        match engine.lease(wanted).await {
            Ok(leases) => {
                for lease in leases {
                    run(&common, &lease).await;
                }
            }
            // The service is away; an engine waits for another one, but not for long.
            Err(_) => {
                let _ = timeout(Duration::from_millis(20), channel.changed()).await;
            }
        }
    }
}

async fn has_ended(common: &Common, lease: &Lease) -> Option<()> {
    let ended = sqlx::query_scalar("select ended_at is not null from lease where id::text = $1");
    let ended: bool = ended.bind(&lease.id).fetch_one(&common.db).await.ok()?;
    ended.then_some(())
}

async fn run(common: &Common, lease: &Lease) {
    for nr in &lease.instance_numbers {
        let mark = common.marks.fetch_add(1, Ordering::Relaxed);
        if mark.is_multiple_of(100) {
            // It is hung up for longer than the lease lasts.
            eventually("the lease to be lost", || has_ended(common, lease)).await;
        }
        let engine = common.engine.at(common.channel.borrow().clone());
        let seconds = f64::from(mark);
        let instance = json!([{ "InstanceNr": nr, "Result": "Passed", "DurationInSec": seconds }]);
        let sent = engine.report(&lease.id, instance).await;
        let mark = (lease.test_report_id.clone(), *nr, seconds);
        let mut ledger = common.ledger.lock().unwrap();
        match sent {
            Ok(stored) if stored[0].duration_in_sec.to_bits() == seconds.to_bits() => {
                ledger.accepted.push(mark);
            }
            Ok(_) => ledger.refused.push(mark),
            Err(status) if reason(&status) == "lease_lost" => {
                ledger.refused.push(mark);
                return;
            }
            // Nobody knows: the service was killed.
            Err(_) => return,
        }
    }
    // Some leave it at that: with its last instance a report has ended anyway.
    if common.marks.load(Ordering::Relaxed).is_multiple_of(2) {
        let engine = common.engine.at(common.channel.borrow().clone());
        let _ = engine.complete(&lease.id, false).await;
    }
}
