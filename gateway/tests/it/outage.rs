//! One service is down: its operations fail at once, and those of the others do not notice.

use std::time::Duration;

use assay_testkit::{Wire, eventually};
use axum::body::Body;
use serde_json::json;
use tokio::time::Instant;

use crate::api::{Answer, Api};

/// Until a client is told that a service is down, at worst.
const TOLD: Duration = Duration::from_secs(3);

/// Until a service that is back works.
const BACK: Duration = Duration::from_secs(1);

const PROJECT: &str = "/api/projects/p";

async fn measured(what: &str, answer: impl Future<Output = Answer>) -> (Answer, Duration) {
    let started = Instant::now();
    let answer = answer.await;
    println!("{what}: {} after {:?}", answer.status, started.elapsed());
    (answer, started.elapsed())
}

/// Asks both services, and a down one twice: for what it has, and to change it.
async fn only_the_catalog_is_down(api: &mut Api) {
    let changed = api.json("PUT", PROJECT, json!({"Name": "Shop"}));
    let (changed, read) =
        tokio::join!(measured("write", changed), measured("read", api.get(PROJECT)));
    for (answer, taken) in [changed, read] {
        answer.problem(503, "unavailable");
        assert_eq!(answer.header("retry-after"), "1");
        assert!(taken < TOLD, "{taken:?}");
    }
    let results = api.request("POST", "/api/projects/p/executions/e/results");
    let results = results.header("Content-Type", "application/json");
    api.send(results, Body::from("[]")).await.ok();
    assert!(api.uploaded().await.is_some());
}

async fn is_back(api: &Api, wire: &Wire) {
    wire.mend();
    let started = Instant::now();
    let answered = || async { (api.get(PROJECT).await.status == 200).then_some(()) };
    eventually("an answer", answered).await;
    println!("back after {:?}", started.elapsed());
    assert!(started.elapsed() < BACK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_was_killed_takes_no_other_with_it_and_works_at_once_when_it_is_back() {
    let (mut api, wire) = Api::start_apart().await;
    api.get(PROJECT).await.ok();
    wire.cut();
    eventually("a failure", || async { (api.get(PROJECT).await.status == 503).then_some(()) })
        .await;
    only_the_catalog_is_down(&mut api).await;
    is_back(&api, &wire).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_hangs_takes_no_other_with_it_and_works_at_once_when_it_goes_on() {
    let (mut api, wire) = Api::start_apart().await;
    api.get(PROJECT).await.ok();
    wire.freeze();
    // The first are under way when it is found out, the second come after that.
    only_the_catalog_is_down(&mut api).await;
    only_the_catalog_is_down(&mut api).await;
    is_back(&api, &wire).await;
}
