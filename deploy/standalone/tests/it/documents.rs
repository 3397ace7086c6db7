//! Linters of the OpenAPI and AsyncAPI documents, and a generated client.

mod clients;
mod compose;
mod ctrf;
mod typescript;

use std::{
    path::{Path, PathBuf},
    process::Output,
};

use assay_testkit::test_dir;
use serde_json::{Value, json};
use tokio::process::Command;
use uuid::Uuid;

/// A path in the repository.
pub(crate) fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path).canonicalize().unwrap()
}

/// Creates a directory for a test.
fn dir() -> PathBuf {
    let dir = test_dir().unwrap().join(Uuid::now_v7().to_string());
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// Node as installed by `deploy/local/install test`, with a private home directory.
pub(crate) fn node(dir: &Path) -> Command {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/node");
    assert!(tools.join("installed").exists(), "run deploy/local/install test");
    let mut command = Command::new(tools.join("node"));
    command
        .current_dir(dir)
        .env("HOME", dir)
        .env("TMPDIR", dir)
        .env("REDOCLY_TELEMETRY", "off")
        .env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true")
        .kill_on_drop(true);
    command
}

/// A program of an installed Node package.
pub(crate) fn tool(program: &str, dir: &Path) -> Command {
    let mut command = node(dir);
    command.arg(at("target/tools/node/node_modules").join(program));
    command
}

/// The whole output of a program.
fn text_of(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}

async fn redocly(document: &Path) -> Output {
    let mut redocly = tool("@redocly/cli/bin/cli.js", &dir());
    redocly.args(["lint", "--format", "stylish", "--config"]);
    redocly.arg(at("deploy/local/tools/redocly.yaml")).arg(document).output().await.unwrap()
}

/// The problems that Spectral finds in documents.
async fn spectral(documents: &[PathBuf]) -> Vec<Value> {
    let mut spectral = tool("@stoplight/spectral-cli/dist/index.js", &dir());
    spectral.args(["lint", "--format", "json", "--fail-severity", "hint", "--ruleset"]);
    let output = spectral.arg(at("deploy/local/tools/spectral.yaml")).args(documents).output();
    let output = output.await.unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text_of(&output)))
}

/// The OpenAPI document with an error.
fn with_error(document: &Path, spoil: impl Fn(&mut Value)) -> PathBuf {
    let text = std::fs::read_to_string(document).unwrap();
    let mut document = serde_json::from_str(&text).unwrap();
    spoil(&mut document);
    let file = dir().join("openapi.json");
    std::fs::write(&file, document.to_string()).unwrap();
    file
}

#[tokio::test]
async fn redocly_finds_no_problems_in_the_openapi_document() {
    let document = at("docs/openapi.json");
    let output = redocly(&document).await;
    let text = text_of(&output);
    assert!(output.status.success() && !text.contains("warning"), "{text}");

    // A single warning is detected.
    let document = with_error(&document, |document| {
        document["components"]["schemas"]["Unused"] = json!({"type": "object"});
    });
    let text = text_of(&redocly(&document).await);
    assert!(text.contains("warning") && text.contains("no-unused-components"), "{text}");
}

#[tokio::test]
async fn spectral_finds_problems_only_in_a_document_with_an_error() {
    let openapi = at("docs/openapi.json");
    let broken = with_error(&openapi, |document| {
        document["paths"] = json!({"/api/projects": document["paths"]["/api/projects"]});
        document["paths"]["/api/projects"]["post"]["tags"] = json!(["Unknown"]);
    });
    // Together, because the program takes seconds to start.
    let problems = spectral(&[openapi, at("docs/asyncapi.yaml"), broken.clone()]).await;
    assert!(problems.iter().any(|one| one["code"] == "operation-tag-defined"), "{problems:#?}");
    let elsewhere = problems.iter().find(|one| one["source"].as_str() != broken.to_str());
    assert_eq!(elsewhere, None);
}
