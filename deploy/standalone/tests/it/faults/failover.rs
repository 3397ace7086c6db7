//! A PostgreSQL that is lost, and its standby that takes its place.

use std::{collections::BTreeSet, sync::Mutex};

use assay_testkit::{Api, Replicated, eventually};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::world::{World, id};

/// Clients who make projects, and go on where that fails.
struct Load {
    api: Api,
    acknowledged: Mutex<BTreeSet<String>>,
    statuses: Mutex<BTreeSet<u16>>,
}

impl Load {
    async fn run_until(&self, enough: &CancellationToken) {
        while !enough.is_cancelled() {
            let answer = self.api.post("/api/projects", json!({"Name": "Shop"})).await;
            self.statuses.lock().unwrap().insert(answer.status.as_u16());
            if answer.status == 201 {
                self.acknowledged.lock().unwrap().insert(id(&answer.json()).to_owned());
            }
        }
    }

    /// How many projects were made.
    fn made(&self) -> usize {
        self.acknowledged.lock().unwrap().len()
    }

    async fn further(&self) {
        let before = self.made();
        eventually("new projects", || async { (self.made() > before + 10).then_some(()) }).await;
    }

    /// The statuses that were answered.
    fn answered(&self) -> BTreeSet<u16> {
        self.statuses.lock().unwrap().clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_takes_over_and_nothing_acknowledged_is_lost() {
    let mut postgres = Replicated::start("catalog").await;
    let world = World::start().await;
    let (world, wire) = world.restarted_on_a_wire(Some(&postgres.primary())).await;
    let load =
        Load { api: world.api.clone(), acknowledged: Mutex::default(), statuses: Mutex::default() };
    let enough = CancellationToken::new();

    let story = async {
        load.further().await;
        assert_eq!(load.answered(), BTreeSet::from([201]));

        postgres.kill_primary().await;
        wire.lead_to_postgres(&postgres.standby()).unwrap();
        eventually("clients that are told", || async {
            load.answered().contains(&503).then_some(())
        })
        .await;
        // The standby would answer reads; but not what was written last, for all we know.
        load.api.get("/api/projects").await.is_problem(503, "unavailable");
        postgres.promote().await;
        load.further().await;
        assert_eq!(load.answered(), BTreeSet::from([201, 503]));
        enough.cancel();
    };
    tokio::join!(load.run_until(&enough), load.run_until(&enough), story);

    let projects = load.api.get("/api/projects").await.ok();
    let there = projects.as_array().unwrap().iter().map(|project| id(project).to_owned());
    let there: BTreeSet<String> = there.collect();
    let lost: Vec<_> = load.acknowledged.lock().unwrap().difference(&there).cloned().collect();
    assert!(lost.is_empty(), "{lost:?}");
    world.stop().await;
}
