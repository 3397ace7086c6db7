//! Requests that nobody thought of: whatever comes, the answer is one that the document describes.

use std::{path::Path, process::Stdio};

use serde_json::json;
use tokio::process::Command;

use crate::{tenant::Tenant, world::World};

/// How long requests are made up, in seconds.
const SECONDS: &str = "30";

/// What has to hold for every answer.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance,\
                      unsupported_method,allow_header_conformance,ignored_auth";

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_asked_the_answer_is_as_the_document_says() {
    let world = World::start().await;
    let tenant = Tenant::new(&world, "curious").await;
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let schemathesis = own.join("../../target/tools/python/bin/schemathesis");
    let seed = std::process::id().to_string();

    let tried = Command::new(&schemathesis)
        .arg("run")
        .arg(format!("{}/api/openapi.json", world.url()))
        .args(["--header", &format!("Authentication: {}", tenant.api.token())])
        // It never ends.
        .args(["--exclude-operation-id", "watch_notifications"])
        // It would end the session.
        .args(["--exclude-operation-id", "logout"])
        .args(["--checks", CHECKS, "--max-time", SECONDS, "--seed", &seed])
        .args(["--phases", "coverage,fuzzing,stateful", "--workers", "1"])
        .args(["--continue-on-failure", "--no-shrink", "--warnings", "off"])
        .env("SCHEMATHESIS_HOOKS", own.join("tests/it/conformance/hooks.py"))
        .env("ASSAY_IDS", json!(tenant.ids).to_string())
        .current_dir(assay_testkit::test_dir().unwrap())
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap_or_else(|error| panic!("{error}: run deploy/local/install test"));
    let said = String::from_utf8_lossy(&tried.stdout);
    assert!(tried.status.success(), "{said}\n{}", String::from_utf8_lossy(&tried.stderr));
    world.stop().await;
}
