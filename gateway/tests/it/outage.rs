//! Outage of one service: its operations fail quickly, and those of other services succeed.

use std::time::Duration;

use assay_testkit::{Wire, eventually};
use axum::body::Body;
use serde_json::json;
use tokio::time::Instant;

use crate::api::{Answer, Api};

/// Maximum time until a request to a failed service gets an error.
const FAILS_WITHIN: Duration = Duration::from_secs(3);

/// Maximum time until requests to a recovered service succeed.
const RECOVERS_WITHIN: Duration = Duration::from_secs(1);

const PROJECT: &str = "/api/projects/p";

async fn measured(what: &str, answer: impl Future<Output = Answer>) -> (Answer, Duration) {
    let started = Instant::now();
    let answer = answer.await;
    println!("{what}: {} after {:?}", answer.status, started.elapsed());
    (answer, started.elapsed())
}

/// Asserts that reads and writes of the catalog fail quickly, and that another service answers.
async fn assert_only_catalog_fails(api: &mut Api) {
    let changed = api.json("PUT", PROJECT, json!({"Name": "Shop"}));
    let (changed, read) =
        tokio::join!(measured("write", changed), measured("read", api.get(PROJECT)));
    for (answer, elapsed) in [changed, read] {
        answer.problem(503, "unavailable");
        assert_eq!(answer.header("retry-after"), "1");
        assert!(elapsed < FAILS_WITHIN, "{elapsed:?}");
    }
    let results = api.request("POST", "/api/projects/p/executions/e/results");
    let results = results.header("Content-Type", "application/json");
    api.send(results, Body::from("[]")).await.ok();
    assert!(api.uploaded().await.is_some());
}

async fn assert_recovers(api: &Api, wire: &Wire) {
    wire.restore();
    let started = Instant::now();
    let answered = || async { (api.get(PROJECT).await.status == 200).then_some(()) };
    eventually("an answer", answered).await;
    println!("recovered after {:?}", started.elapsed());
    assert!(started.elapsed() < RECOVERS_WITHIN);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_service_fails_alone_and_recovers_within_a_second() {
    let (mut api, wire) = Api::start_with_separate_catalog().await;
    api.get(PROJECT).await.ok();
    wire.cut();
    eventually("a failure", || async { (api.get(PROJECT).await.status == 503).then_some(()) })
        .await;
    assert_only_catalog_fails(&mut api).await;
    assert_recovers(&api, &wire).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_service_fails_alone_and_recovers_within_a_second() {
    let (mut api, wire) = Api::start_with_separate_catalog().await;
    api.get(PROJECT).await.ok();
    wire.freeze();
    // The first requests are in flight when the outage is detected, the second come later.
    assert_only_catalog_fails(&mut api).await;
    assert_only_catalog_fails(&mut api).await;
    assert_recovers(&api, &wire).await;
}
