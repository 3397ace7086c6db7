//! PostgreSQL out of reach, and PostgreSQL that says nothing.

use std::time::{Duration, Instant};

use assay_testkit::{Answer, Wire, eventually};
use futures::future::join_all;
use reqwest::header::RETRY_AFTER;
use serde_json::json;

use crate::world::{World, project};

/// How soon a client has to be told that the database is away.
const TOLD: Duration = Duration::from_secs(3);

/// How many connections to its database the catalog has at most.
const CONNECTIONS: usize = 8;

/// An Assay whose catalog reaches its database by a wire, and the path of a project in it.
struct Story {
    world: World,
    wire: Wire,
    project: String,
}

impl Story {
    async fn begin() -> Self {
        let (world, wire) = World::start().await.restarted_on_a_wire(None).await;
        let project = project(&world.api).await;
        Self { world, wire, project }
    }

    /// What needs the database is refused soon, and the rest works.
    async fn only_the_catalog_is_away(&self) {
        let api = &self.world.api;
        for _ in 0..2 {
            is_told_soon(api.get(&self.project)).await;
        }
        is_told_soon(api.post("/api/projects", json!({"Name": "Lost"}))).await;
        for path in ["/api/management/customers/current", "/api/notifications"] {
            api.get(path).await.ok();
        }
    }

    async fn end(self) {
        let api = &self.world.api;
        self.wire.mend();
        eventually("the project again", || async {
            (api.get(&self.project).await.status == 200).then_some(())
        })
        .await;
        let projects = api.get("/api/projects").await.ok();
        assert_eq!(projects.as_array().unwrap().len(), 1, "none that was refused: {projects}");
        self.world.stop().await;
    }
}

async fn is_told_soon(answer: impl Future<Output = Answer>) {
    let begun = Instant::now();
    let answer = answer.await;
    answer.is_problem(503, "unavailable");
    assert!(answer.headers.contains_key(RETRY_AFTER), "{answer}");
    assert!(begun.elapsed() < TOLD, "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_out_of_reach_stops_only_its_service_and_clients_are_told_soon() {
    let story = Story::begin().await;
    story.wire.cut();
    story.only_the_catalog_is_away().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_hangs_stops_only_its_service_and_clients_are_told_soon() {
    let story = Story::begin().await;
    story.wire.freeze();
    // Some get a connection that worked a moment ago, and only their deadline can tell.
    let under_way = (0..CONNECTIONS).map(|_| story.world.api.get(&story.project));
    for answer in join_all(under_way).await {
        assert!([503, 504].contains(&answer.status.as_u16()), "{answer}");
    }
    story.only_the_catalog_is_away().await;
    story.end().await;
}
