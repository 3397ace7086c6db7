//! Failover from a lost PostgreSQL to its standby.

use std::{collections::BTreeSet, sync::Mutex};

use assay_testkit::{Api, Replicated, eventually};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::world::{World, id};

/// Clients that create projects and continue after failures.
struct Load {
    api: Api,
    acknowledged: Mutex<BTreeSet<String>>,
    statuses: Mutex<BTreeSet<u16>>,
}

impl Load {
    async fn run_until(&self, stop: &CancellationToken) {
        while !stop.is_cancelled() {
            let answer = self.api.post("/api/projects", json!({"Name": "Shop"})).await;
            self.statuses.lock().unwrap().insert(answer.status.as_u16());
            if answer.status == 201 {
                self.acknowledged.lock().unwrap().insert(id(&answer.json()).to_owned());
            }
        }
    }

    /// Number of acknowledged projects.
    fn acknowledged(&self) -> usize {
        self.acknowledged.lock().unwrap().len()
    }

    async fn progress(&self) {
        let before = self.acknowledged();
        eventually("new projects", || async { (self.acknowledged() > before + 10).then_some(()) })
            .await;
    }

    /// The status codes of all answers.
    fn statuses(&self) -> BTreeSet<u16> {
        self.statuses.lock().unwrap().clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failover_to_a_standby_loses_no_acknowledged_write() {
    let mut postgres = Replicated::start("catalog").await;
    let world = World::start().await;
    let (world, wire) = world.restart_with_catalog_on_wire(Some(&postgres.primary())).await;
    let load =
        Load { api: world.api.clone(), acknowledged: Mutex::default(), statuses: Mutex::default() };
    let stop = CancellationToken::new();

    let scenario = async {
        load.progress().await;
        assert_eq!(load.statuses(), BTreeSet::from([201]));

        postgres.kill_primary().await;
        wire.redirect_to_postgres(&postgres.standby()).unwrap();
        eventually("clients to get an error", || async {
            load.statuses().contains(&503).then_some(())
        })
        .await;
        // The standby could answer reads, but may lack the latest writes.
        load.api.get("/api/projects").await.is_problem(503, "unavailable");
        postgres.promote().await;
        load.progress().await;
        assert_eq!(load.statuses(), BTreeSet::from([201, 503]));
        stop.cancel();
    };
    tokio::join!(load.run_until(&stop), load.run_until(&stop), scenario);

    let projects = load.api.get("/api/projects").await.ok();
    let there = projects.as_array().unwrap().iter().map(|project| id(project).to_owned());
    let there: BTreeSet<String> = there.collect();
    let lost: Vec<_> = load.acknowledged.lock().unwrap().difference(&there).cloned().collect();
    assert!(lost.is_empty(), "{lost:?}");
    world.stop().await;
}
