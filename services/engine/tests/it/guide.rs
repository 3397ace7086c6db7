//! The engines of `docs/engines`, with a server that does not behave.

use std::{
    future::pending,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use assay_proto::execution::{Lease, LeasedTestCase};
use axum::{
    Json, Router,
    extract::Request,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, process::Command, time::timeout};

use super::{LEASE, lease};

/// The log of a lease, and the number of requests that have appended to it.
type Log = Arc<Mutex<(String, usize)>>;

fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Returns the commands that start the engines. That in Go is built if there is a compiler.
async fn engines(folder: &Path) -> Vec<Vec<PathBuf>> {
    let python = at("target/tools/python/bin/python");
    let mut engines = vec![vec![python, at("docs/engines/engine.py")]];
    let engine = folder.join("engine");
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&engine).arg(at("docs/engines/engine.go"));
    build.env("GOCACHE", folder.join("go")).env("GOFLAGS", "").current_dir(folder);
    match build.output().await {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            engines.push(vec![engine]);
        }
        Err(error) => println!("the engine in Go is not tested: {error}"),
    }
    engines
}

/// Returns a lease of two instances.
fn leased() -> Lease {
    let test_case = LeasedTestCase { identifier: "A-1".to_owned(), ..LeasedTestCase::default() };
    Lease {
        instance_numbers: vec![1, 2],
        maximum_duration_in_min: 1.0,
        test_case: Some(test_case),
        ..lease(LEASE)
    }
}

/// Appends the text of a request that the log lacks, as Assay does. The first answer is lost.
fn append(log: &Log, request: &Value) -> Response {
    let mut log = log.lock().unwrap();
    let (text, requests) = &mut *log;
    let offset = request["Offset"].as_u64().map_or(text.len(), |it| usize::try_from(it).unwrap());
    let known = text.len() - offset;
    text.push_str(request["Text"].as_str().unwrap().get(known..).unwrap_or_default());
    *requests += 1;
    if *requests == 1 {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    Json(json!({"Size": text.len(), "IsFull": false})).into_response()
}

/// Starts a server that has one lease. Returns its URL.
async fn serve(log: Log) -> String {
    let app = Router::new().fallback(async move |request: Request| {
        let path = request.uri().path().to_owned();
        let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        match path.rsplit('/').next().unwrap_or_default() {
            "leases" => Json([leased()]).into_response(),
            "log" => append(&log, &body),
            "instances" => Json([json!({})]).into_response(),
            "heartbeat" => pending().await,
            _ => StatusCode::NO_CONTENT.into_response(),
        }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    #[expect(clippy::disallowed_methods, reason = "the server ends with the test")]
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn output_whose_answer_is_lost_is_appended_once() {
    let folder = tempfile::tempdir().unwrap();
    for engine in engines(folder.path()).await {
        let log = Log::default();
        let mut command = Command::new(&engine[0]);
        command.args(&engine[1..]).args(["--once", "echo", "one"]);
        command.env("ASSAY_URL", serve(log.clone()).await).env("ASSAY_TOKEN", "secret-token");
        let running = command.stdin(Stdio::null()).kill_on_drop(true).status();
        let status = timeout(Duration::from_mins(1), running).await.expect("the engine ends");
        assert!(status.unwrap().success(), "{engine:?}");
        assert_eq!(log.lock().unwrap().0, "one\none\n", "{engine:?}");
    }
}
