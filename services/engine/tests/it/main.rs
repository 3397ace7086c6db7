//! The engine against servers and proxies that do not behave.

mod endings;
mod files;
mod guide;

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use assay_client::Account;
use assay_engine::Config;
use assay_proto::{
    TestType, Variable,
    catalog::AutomatedTestPlan,
    execution::{Lease, LeasedTestCase},
};
use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::Request,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use futures::stream;
use serde_json::json;
use tokio::{net::TcpListener, time::timeout};
use tokio_util::sync::CancellationToken;

const LEASE: &str = "019cade2-11c0-7b21-8d4f-0a96c3e15f72";

/// The paths of the requests that a server has received, and the bodies of small ones.
type Received = Arc<Mutex<Vec<(String, String)>>>;

/// Starts a server that answers requests for leases, and accepts all others. Returns its URL.
async fn serve(
    lease: impl Fn(usize) -> Response + Clone + Send + Sync + 'static,
) -> (String, Received) {
    serve_with(lease, |_| Json(json!({"Continue": true})).into_response()).await
}

/// Starts a server that answers requests for leases, and others by their paths. Returns its URL.
#[expect(clippy::disallowed_methods, reason = "the server ends with the test")]
async fn serve_with(
    lease: impl Fn(usize) -> Response + Clone + Send + Sync + 'static,
    other: impl Fn(&str) -> Response + Clone + Send + Sync + 'static,
) -> (String, Received) {
    let received = Received::default();
    let kept = received.clone();
    let app = Router::new().fallback(async move |request: Request| {
        let path = request.uri().path().to_owned();
        let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
        let body = String::from_utf8_lossy(&body).into_owned();
        let before = {
            let mut kept = kept.lock().unwrap();
            kept.push((path.clone(), body));
            kept.iter().filter(|(before, _)| *before == path).count() - 1
        };
        match path.as_str() {
            "/api/automation/leases" => lease(before),
            path => other(path),
        }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, received)
}

/// Returns the settings of an engine that runs a command of a shell.
fn config(url: &str, command: &str) -> Config {
    Config {
        account: Account { url: url.parse().unwrap(), token: "secret-token".into() },
        target_group: String::new(),
        needs_public_ip: None,
        labels: Vec::new(),
        projects: Vec::new(),
        cache: None,
        cache_gib: 1,
        name: "engine".to_owned(),
        parallel: 2,
        heartbeat_seconds: 1,
        grace_seconds: 0,
        live_log: true,
        command: ["sh", "-c", command].map(Into::into).into(),
    }
}

/// Runs an engine for a time. Returns its failure.
async fn run(url: &str, command: &str, time: Duration) -> Option<String> {
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let running = assay_engine::run(config(url, command), stop);
    let mut running = std::pin::pin!(running);
    if let Ok(ended) = timeout(time, &mut running).await {
        return ended.err().map(|error| format!("{error:#}"));
    }
    stopping.cancel();
    let ended = timeout(Duration::from_mins(1), running).await.expect("the engine stops");
    ended.err().map(|error| format!("{error:#}"))
}

/// Returns a lease of one instance.
fn lease(id: &str) -> Lease {
    let mut lease = Lease { id: id.to_owned(), instance_numbers: vec![1], ..Lease::default() };
    lease.set_test_type(TestType::Default);
    lease
}

/// Returns leases, of which each has a number of its own.
fn leases(count: usize) -> Response {
    let id = |number: usize| format!("019cade2-11c0-7b21-8d4f-{number:012}");
    Json((0..count).map(|number| lease(&id(number))).collect::<Vec<_>>()).into_response()
}

/// Returns the command that adds a line to a file.
fn noting(file: &Path) -> String {
    format!("echo run >> '{}'", file.display())
}

fn runs(file: &Path) -> usize {
    std::fs::read_to_string(file).unwrap_or_default().lines().count()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_does_not_follow_a_redirect() {
    let (other, received) = serve(|_| leases(0)).await;
    let to = format!("{other}/api/automation/leases");
    let redirect =
        move |_| (StatusCode::PERMANENT_REDIRECT, [("location", to.clone())]).into_response();
    let (url, _) = serve(redirect).await;

    let failure = run(&url, "true", Duration::from_secs(5)).await.unwrap_or_default();

    assert!(failure.contains(&format!("redirects to {other}")), "{failure}");
    assert!(received.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_whose_id_is_a_path_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("runs");
    for id in ["x/../../users/current/tokens", "../../users/current", "x?y", ""] {
        let (url, received) = serve(move |_| Json([lease(id)]).into_response()).await;
        run(&url, &noting(&file), Duration::from_secs(2)).await;
        let received = received.lock().unwrap();
        let paths: Vec<_> = received.iter().map(|(path, _)| path.clone()).collect();
        assert!(paths.iter().all(|path| path == "/api/automation/leases"), "{paths:?}");
        assert!(paths.len() <= 6, "each answer is followed by a pause: {}", paths.len());
        assert_eq!(runs(&file), 0, "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_tests_run_than_were_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("runs");
    let (url, _) = serve(|before| leases(if before == 0 { 50 } else { 0 })).await;
    run(&url, &format!("{}; sleep 1", noting(&file)), Duration::from_secs(3)).await;
    assert_eq!(runs(&file), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_queue_that_does_not_wait_is_not_asked_without_a_pause() {
    let (url, received) = serve(|_| leases(0)).await;
    run(&url, "true", Duration::from_secs(2)).await;
    let count = received.lock().unwrap().len();
    assert!((1..=6).contains(&count), "{count}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_an_end_is_refused() {
    let endless = |_| {
        let chunk = Bytes::from(vec![b' '; 1 << 16]);
        let chunks = stream::repeat_with(move || Ok::<_, std::io::Error>(chunk.clone()));
        Body::from_stream(chunks).into_response()
    };
    let (url, _) = serve(endless).await;
    let failure = run(&url, "true", Duration::from_secs(20)).await.unwrap_or_default();
    assert!(failure.contains("more than"), "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn values_with_nul_and_reserved_names_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("environment");
    let variables = [
        ("GOOD", "line 1\nline 2"),
        ("BAD", "a\u{0}b"),
        ("X\nY", "z"),
        ("BASH_ENV", "/evil"),
        ("ASSAY_TOKEN", "z"),
        ("LD_PRELOAD", "/evil"),
    ];
    let variables = variables.map(|(name, content)| Variable {
        name: name.to_owned(),
        content: content.to_owned(),
        ..Variable::default()
    });
    let mut test_plan =
        AutomatedTestPlan { variables: variables.into(), ..AutomatedTestPlan::default() };
    test_plan.set_test_type(TestType::Default);
    let test_case =
        LeasedTestCase { identifier: "a\u{0}b".to_owned(), ..LeasedTestCase::default() };
    let lease = Lease { test_plan: Some(test_plan), test_case: Some(test_case), ..lease(LEASE) };
    let lease = move |before| match before {
        0 => Json([lease.clone()]).into_response(),
        _ => leases(0),
    };
    let (url, received) = serve(lease).await;

    run(&url, &format!("env > '{}'", file.display()), Duration::from_secs(2)).await;

    let environment = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(environment.contains("GOOD=line 1\nline 2"), "{environment:?} {received:?}");
    for hidden in ["BAD=", "/evil", "\nASSAY_TOKEN", "\nY="] {
        assert!(!environment.contains(hidden), "{hidden}: {environment}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_file_that_is_a_link_or_a_pipe_is_a_failure_of_the_engine() {
    for (make, variable) in [
        ("mkfifo", "ASSAY_RESULT_FILE"),
        ("ln -s /dev/zero", "ASSAY_RESULT_FILE"),
        ("mkfifo", "ASSAY_JUNIT_FILE"),
        ("ln -s /dev/zero", "ASSAY_JUNIT_FILE"),
    ] {
        let (url, received) = serve(|before| leases(usize::from(before == 0))).await;
        let command = format!("{make} \"${variable}\"");
        run(&url, &command, Duration::from_secs(3)).await;
        let received = received.lock().unwrap();
        let done = received.iter().find(|(path, _)| path.ends_with("/complete"));
        let (_, body) = done.unwrap_or_else(|| panic!("{command}: {received:?}"));
        assert!(body.contains("is not a file"), "{command}: {body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_file_with_too_many_values_is_a_failure_of_the_engine() {
    let (url, received) = serve(|before| leases(usize::from(before == 0))).await;
    let command = r#"{ printf '{"Result":"Passed","Steps":[{}'; yes ',{}' | head -n 2000000 | tr -d '\n'
        printf ']}'; } > "$ASSAY_RESULT_FILE""#;
    run(&url, command, Duration::from_secs(6)).await;
    let received = received.lock().unwrap();
    let done = received.iter().find(|(path, _)| path.ends_with("/complete"));
    let (_, body) = done.unwrap_or_else(|| panic!("{received:?}"));
    assert!(body.contains("too many values"), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn background_processes_do_not_keep_a_test_from_ending() {
    for command in ["sleep 100 & echo started", "setsid sleep 20 & echo started"] {
        let (url, received) = serve(|before| leases(usize::from(before == 0))).await;
        run(&url, command, Duration::from_secs(8)).await;
        let received = received.lock().unwrap();
        let reported = received.iter().find(|(path, _)| path.ends_with("/instances"));
        let (_, body) = reported.unwrap_or_else(|| panic!("{command}: {received:?}"));
        assert!(body.contains("started") && body.contains("Passed"), "{command}: {body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_whose_results_come_after_a_cancellation_is_completed() {
    let other = |path: &str| {
        if path.ends_with("/instances") {
            StatusCode::CONFLICT.into_response()
        } else {
            Json(json!({"Continue": true})).into_response()
        }
    };
    let (url, received) = serve_with(|before| leases(usize::from(before == 0)), other).await;
    run(&url, "true", Duration::from_secs(3)).await;
    let received = received.lock().unwrap();
    assert!(received.iter().any(|(path, _)| path.ends_with("/complete")), "{received:?}");
}
