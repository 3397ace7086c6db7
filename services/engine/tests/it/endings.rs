//! The end of leases, with servers that stop answering.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use assay_proto::Timestamp;
use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::json;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{Received, config, leases, serve_with};

/// The path of the first of `leases`.
const PATH: &str = "/api/automation/leases/019cade2-11c0-7b21-8d4f-000000000000";

/// Runs an engine with one lease until it is stopped. Returns the requests that the server has received.
async fn run(
    command: &str,
    stop: CancellationToken,
    answer: impl Fn(&str) -> Response + Clone + Send + Sync + 'static,
) -> Received {
    let (url, received) = serve_with(|before| leases(usize::from(before == 0)), answer).await;
    let running = assay_engine::run(config(&url, command), stop);
    let ended = timeout(Duration::from_mins(1), running).await.expect("the engine stops");
    ended.unwrap();
    received
}

fn count(received: &Received, end: &str) -> usize {
    received.lock().unwrap().iter().filter(|(path, _)| path.ends_with(end)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_is_cut_off_stops_its_test_and_returns_it_while_the_lease_is_held() {
    const HELD: Duration = Duration::from_secs(22);
    let (stop, is_renewed) = (CancellationToken::new(), Arc::new(AtomicBool::default()));
    let released = stop.clone();
    let begun = Instant::now();

    let received = run("sleep 300", stop, move |path| {
        if path.ends_with("/heartbeat") && !is_renewed.swap(true, Ordering::Relaxed) {
            let expires_at = Timestamp((SystemTime::now() + HELD).into());
            return Json(json!({"Continue": true, "ExpiresAt": expires_at})).into_response();
        }
        if path == PATH {
            released.cancel();
            return StatusCode::NO_CONTENT.into_response();
        }
        StatusCode::SERVICE_UNAVAILABLE.into_response()
    })
    .await;

    assert!(begun.elapsed() < HELD, "{:?}", begun.elapsed());
    assert_eq!(count(&received, "/instances"), 0);
    assert!(count(&received, "/heartbeat") > 1, "{received:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_stops_returns_a_test_whose_result_is_not_accepted_in_time() {
    let stop = CancellationToken::new();
    let reported = stop.clone();
    let received = run("true", stop, move |path| {
        if path.ends_with("/instances") {
            reported.cancel();
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        }
        Json(json!({"Continue": true})).into_response()
    })
    .await;
    assert_eq!(count(&received, PATH), 1, "{received:?}");
}
