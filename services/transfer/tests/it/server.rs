//! A server with one project and one execution, whose answers a test can replace.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use axum::{
    Json, Router,
    extract::Request,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

pub(crate) const PROJECT: &str = "019cade2-11c0-7b21-8d4f-0a96c3e15f01";
pub(crate) const EXECUTION: &str = "019cade2-11c0-7b21-8d4f-0a96c3e15f02";
pub(crate) const ARTIFACT: &str = "019cade2-11c0-7b21-8d4f-0a96c3e15f03";
pub(crate) const FILE: &str = "019cade2-11c0-7b21-8d4f-0a96c3e15f04";

/// SHA-256 of `abc`, from FIPS 180-2.
pub(crate) const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// Returns the answer to a request, from its path with the query. `None` for the usual one.
pub(crate) type Answer = Arc<dyn Fn(&str) -> Option<Response> + Send + Sync>;

pub(crate) struct Server {
    pub(crate) url: String,
    /// The method, path, headers and body of each request.
    pub(crate) received: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts a server that behaves.
    pub(crate) async fn new() -> Self {
        Self::with(|_| None).await
    }

    /// Starts a server with other answers.
    #[expect(clippy::disallowed_methods, reason = "the server ends with the test")]
    pub(crate) async fn with(
        answer: impl Fn(&str) -> Option<Response> + Send + Sync + 'static,
    ) -> Self {
        let (answer, received): (Answer, _) =
            (Arc::new(answer), Arc::<Mutex<Vec<String>>>::default());
        let kept = received.clone();
        let app = Router::new().fallback(async move |request: Request| {
            let path = request.uri().to_string();
            let (head, body) = request.into_parts();
            let body = axum::body::to_bytes(body, 64 << 20).await.unwrap();
            let body = String::from_utf8_lossy(&body);
            kept.lock().unwrap().push(format!("{} {path} {:?} {body}", head.method, head.headers));
            answer(&path).unwrap_or_else(|| usual(&path))
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, received }
    }

    pub(crate) fn received(&self) -> Vec<String> {
        self.received.lock().unwrap().clone()
    }
}

/// Returns an answer in JSON.
pub(crate) fn json(value: Value) -> Response {
    Json(value).into_response()
}

/// Returns the list of artifacts with one of this name and link.
pub(crate) fn artifact(name: &str, uri: &str) -> Response {
    let artifact = json!({
        "Id": ARTIFACT, "Name": name, "ContentType": "text/plain", "Size": "contents".len(), "Uri": uri,
    });
    json(json!([artifact]))
}

/// Returns the link to an artifact, as a server sends it.
pub(crate) fn link(name: &str) -> String {
    format!("https://public.example/api/artifacts/{ARTIFACT}/{name}?customer=1&signature=2")
}

/// Returns a file of the project as a record.
pub(crate) fn stored_file(name: &str, size: u64, sha256: &str) -> Value {
    json!({
        "Id": FILE, "ProjectId": PROJECT, "Name": name, "ContentType": "application/x-msi",
        "Size": size, "Sha256": sha256, "Url": "https://evil.example/",
    })
}

/// Returns the answers about the files of the project, which are this one, except to requests for its contents.
pub(crate) fn with_file(path: &str, file: &Value) -> Option<Response> {
    let files = format!("/api/projects/{PROJECT}/files");
    if path == format!("{files}?limit=1000") {
        return Some(json(json!([file])));
    }
    (path == format!("{files}/{FILE}")).then(|| json(file.clone()))
}

fn usual(path: &str) -> Response {
    let at = format!("/api/projects/{PROJECT}");
    let execution = json!({
        "Id": EXECUTION, "TestSetName": "nightly", "Status": "Completed",
        "CompletionDateTime": "2026-11-23T12:00:00Z", "TestReports": [],
    });
    let lists = HashMap::from([
        ("/api/projects".to_owned(), json!([{"Id": PROJECT, "Name": "shop"}])),
        (format!("{at}/executions"), json!([{"Id": EXECUTION}])),
    ]);
    let path = path.split('?').next().unwrap_or_default();
    if let Some(list) = lists.get(path) {
        return Json(list.clone()).into_response();
    }
    let value = if path == at {
        json!({"Id": PROJECT, "Name": "shop"})
    } else if path == format!("{at}/executions/{EXECUTION}") {
        execution
    } else if path == "/api/executions" {
        let mut opened = execution;
        opened["CompletionDateTime"] = Value::Null;
        opened
    } else if path.ends_with("/results") {
        return "{\"Identifier\":\"a\",\"Result\":\"Passed\"}\n".into_response();
    } else if path.starts_with("/api/artifacts/") {
        return "contents".into_response();
    } else if path.ends_with("/results/artifacts") {
        return artifact("log.txt", &link("log.txt"));
    } else {
        json!([])
    };
    Json(value).into_response()
}
