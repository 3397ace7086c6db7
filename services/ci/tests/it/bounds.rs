//! Answers without an end, and ids that are paths.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    http::StatusCode,
    routing::post,
};
use futures::stream;
use serde_json::json;

use super::{PROJECT, assay, complete, execution, run, serve};

/// Returns a body that never ends.
fn endless(start: &'static str, chunk: &'static [u8]) -> Body {
    let rest = stream::repeat_with(move || Ok::<_, std::io::Error>(Bytes::from_static(chunk)));
    let start = stream::iter([Ok(Bytes::from_static(start.as_bytes()))]);
    Body::from_stream(futures::StreamExt::chain(start, rest))
}

static CHUNK: [u8; 1 << 16] = [b'x'; 1 << 16];
static BLANKS: [u8; 1 << 16] = [b' '; 1 << 16];

#[tokio::test]
async fn an_answer_without_an_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (start, chunk) in [("", &BLANKS), (r#"{"Id": ""#, &CHUNK), (r#"{"other": ""#, &CHUNK)] {
        let app = Router::new().route("/api/executions", post(async move || endless(start, chunk)));
        let url = serve(app).await;
        let (code, output) = complete(&url, folder.path(), &[], "").await;
        assert_eq!(code, 3, "{output}");
        assert!(output.contains("more than"), "{output}");
    }
}

#[tokio::test]
async fn a_problem_without_an_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let app = Router::new().route(
        "/api/executions",
        post(|| async { (StatusCode::BAD_REQUEST, endless(r#"{"detail": ""#, &CHUNK)) }),
    );
    let url = serve(app).await;
    let (code, output) = complete(&url, folder.path(), &[], "").await;
    assert_eq!(code, 3, "{output}");
    assert!(output.contains("400 Bad Request") && output.len() < 10_000, "{output}");
}

#[tokio::test]
async fn an_id_of_the_server_is_neither_a_path_nor_a_command() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("work");
    fs::create_dir(&work).unwrap();
    let mut execution = execution();
    execution["Id"] = json!("x/../../escaped");
    fs::create_dir(work.join("assay-x")).unwrap();
    let url = serve(assay(execution)).await;
    let variables = [
        ("TF_BUILD", "true"),
        ("BUILD_BUILDID", "7"),
        ("AGENT_TEMPDIRECTORY", work.to_str().unwrap()),
    ];

    let (code, output) = complete(&url, folder.path(), &variables, "").await;

    assert_eq!(code, 3, "{output}");
    assert!(output.contains("UUID"), "{output}");
    assert!(!folder.path().join("escaped.md").exists());
}

#[tokio::test]
async fn answers_that_are_not_an_execution_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for answer in [json!(null), json!([]), json!({"Id": 1}), json!("x"), json!({})] {
        let url = serve(assay(answer)).await;
        let run = complete(&url, folder.path(), &[], "");
        let (code, output) = tokio::time::timeout(Duration::from_secs(10), run).await.unwrap();
        assert_eq!(code, 3, "{output}");
    }
}

#[tokio::test]
async fn pages_without_an_end_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let app = Router::new().fallback(async move || {
        let next = count.fetch_add(1, Ordering::Relaxed);
        let link = format!("</api/projects?cursor={next}>; rel=\"next\"");
        let test = json!({"TestCaseIdentifier": "x".repeat(8 << 20), "TestCaseName": "a"});
        ([("link", link)], Json(json!([test])))
    });
    let url = serve(app).await;
    let (code, output) =
        run(&url, folder.path(), &[], &format!("skipped --project {PROJECT}")).await;
    assert_eq!(code, 3, "{output}");
    assert!(output.contains("more than"), "{output}");
    assert!(asked.load(Ordering::Relaxed) < 10);
}
