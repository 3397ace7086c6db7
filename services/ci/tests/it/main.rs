//! `assay-ci` against servers and proxies that do not behave.

mod action;
mod bounds;
mod commands;
mod comments;
mod jobs;
mod packages;
mod redirects;

use std::{net::SocketAddr, path::Path, process::Output, time::Duration};

use axum::{Json, Router, routing::post};
use serde_json::{Value, json};
use tokio::{net::TcpListener, process::Command, time::timeout};

const EXECUTION: &str = "019cade2-11c0-7b21-8d4f-0a96c3e15f72";
const PROJECT: &str = "019cade2-11c0-7b21-8d4f-0a96c3e15f73";

/// Time that a run may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// Starts a server, and returns its URL.
#[expect(clippy::disallowed_methods, reason = "the server ends with the test")]
async fn serve(app: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("http://{address}")
}

/// Returns an execution that has ended, with a failed test.
fn execution() -> Value {
    json!({
        "Id": EXECUTION, "ProjectId": PROJECT, "TestSetName": "nightly", "Url": null,
        "CompletionDateTime": "2026-11-23T12:00:00Z", "Result": "Failed",
        "Statistic": {"TestCasesTotal": 1, "TestCasesPassed": 0, "TestCasesFailed": 1},
        "TestReports": [{"Result": "Failed", "TestCaseIdentifier": "shop.pays"}],
    })
}

/// Returns a server whose executions have ended as stated.
fn assay(execution: Value) -> Router {
    Router::new().route("/api/executions", post(|| async { Json(execution) }))
}

/// Runs `assay-ci complete` in a folder with environment variables. Returns its exit code and output.
async fn complete(
    url: &str,
    folder: &Path,
    variables: &[(&str, &str)],
    more: &str,
) -> (i32, String) {
    let arguments = format!("complete --project shop --set nightly --key k {more}");
    run(url, folder, variables, arguments.trim()).await
}

async fn run(
    url: &str,
    folder: &Path,
    variables: &[(&str, &str)],
    arguments: &str,
) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay-ci"));
    command
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .env_clear()
        .env("ASSAY_URL", url)
        .env("ASSAY_TOKEN", "secret-token")
        .envs(variables.iter().copied())
        .kill_on_drop(true);
    let output = timeout(PATIENCE, command.output()).await.expect("the program ends");
    let Output { status, stdout, stderr } = output.unwrap();
    (status.code().unwrap(), String::from_utf8([stdout, stderr].concat()).unwrap())
}
