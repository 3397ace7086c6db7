//! An unreachable and a hanging PostgreSQL.

use std::time::{Duration, Instant};

use assay_testkit::{Answer, Wire, eventually};
use futures::future::join_all;
use reqwest::header::RETRY_AFTER;
use serde_json::json;

use crate::world::{World, create_project};

/// Maximum time until a request gets an error.
const FAILS_WITHIN: Duration = Duration::from_secs(3);

/// Maximum number of database connections of the catalog.
const CONNECTIONS: usize = 8;

/// An Assay whose catalog reaches its database through a wire, and the path of a project in it.
struct Scenario {
    world: World,
    wire: Wire,
    project: String,
}

impl Scenario {
    async fn start() -> Self {
        let (world, wire) = World::start().await.restart_with_catalog_on_wire(None).await;
        let project = create_project(&world.api).await;
        Self { world, wire, project }
    }

    /// Asserts that requests to the catalog fail quickly and that others succeed.
    async fn assert_only_catalog_fails(&self) {
        let api = &self.world.api;
        for _ in 0..2 {
            assert_fails_quickly(api.get(&self.project)).await;
        }
        assert_fails_quickly(api.post("/api/projects", json!({"Name": "Lost"}))).await;
        for path in ["/api/management/customers/current", "/api/notifications"] {
            api.get(path).await.ok();
        }
    }

    async fn assert_recovers(self) {
        let api = &self.world.api;
        self.wire.restore();
        eventually("the project again", || async {
            (api.get(&self.project).await.status == 200).then_some(())
        })
        .await;
        let projects = api.get("/api/projects").await.ok();
        assert_eq!(
            projects.as_array().unwrap().len(),
            1,
            "no project of a failed request: {projects}"
        );
        self.world.stop().await;
    }
}

async fn assert_fails_quickly(answer: impl Future<Output = Answer>) {
    let started = Instant::now();
    let answer = answer.await;
    answer.is_problem(503, "unavailable");
    assert!(answer.headers.contains_key(RETRY_AFTER), "{answer}");
    assert!(started.elapsed() < FAILS_WITHIN, "{:?}", started.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_database_fails_only_its_service_and_quickly() {
    let scenario = Scenario::start().await;
    scenario.wire.cut();
    scenario.assert_only_catalog_fails().await;
    scenario.assert_recovers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_database_fails_only_its_service_and_quickly() {
    let scenario = Scenario::start().await;
    scenario.wire.freeze();
    // Some requests get a connection that worked a moment ago, and fail at their deadline. Others wait
    // for these, and may be refused as too many at about the same time.
    let in_flight = (0..CONNECTIONS).map(|_| scenario.world.api.get(&scenario.project));
    for answer in join_all(in_flight).await {
        assert!([429, 503, 504].contains(&answer.status.as_u16()), "{answer}");
    }
    scenario.assert_only_catalog_fails().await;
    scenario.assert_recovers().await;
}
