//! The files of leases, from servers that do not behave.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use assay_engine::Config;
use assay_proto::{
    TestType,
    catalog::AutomatedTestPlan,
    execution::{Lease, LeasedFile},
};
use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderMap, StatusCode, header::RANGE},
    response::{IntoResponse, Response},
};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::Barrier,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::config;

const ID: &str = "019cade2-11c0-7226-b375-01b542390175";
const OTHER: &str = "019cade2-11c0-7226-b375-01b542390176";

/// SHA-256 of `abc`, from FIPS 180-2.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

fn file(id: &str, name: &str, size: i64) -> LeasedFile {
    LeasedFile {
        id: id.to_owned(),
        name: name.to_owned(),
        size,
        sha256: ABC.to_owned(),
        // The token must not be sent to it.
        url: "https://evil.example/".to_owned(),
    }
}

/// Runs an engine with tests that have these files, one after the other, and returns the bodies of the results
/// and completions, and the number of downloads.
async fn run(
    config: Config,
    tests: Vec<Vec<LeasedFile>>,
    download: impl Fn(&HeaderMap) -> Response + Clone + Send + Sync + 'static,
) -> (Vec<Value>, usize) {
    let downloads = Arc::new(AtomicUsize::new(0));
    let (reports, mut reported) = tokio::sync::mpsc::unbounded_channel();
    let count = tests.len();
    let leases = Arc::new(Mutex::new(tests.into_iter()));
    let counted = downloads.clone();
    let app = Router::new().fallback(async move |request: Request| {
        let path = request.uri().path().to_owned();
        if path.contains("/files/") {
            counted.fetch_add(1, Ordering::Relaxed);
            return download(request.headers());
        }
        if path == "/api/automation/leases" {
            let next = leases.lock().unwrap().next();
            return Json(next.map(lease).into_iter().collect::<Vec<_>>()).into_response();
        }
        let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
        if path.ends_with("/instances") || path.ends_with("/complete") {
            let _ = reports.send(serde_json::from_slice(&body).unwrap_or_default());
        }
        Json(json!({"Continue": true})).into_response()
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    #[expect(clippy::disallowed_methods, reason = "the server ends with the test")]
    tokio::spawn(async move { axum::serve(listener, app).await });

    let stop = CancellationToken::new();
    let running = assay_engine::run(config_at(config, &url), stop.clone());
    let mut results = Vec::new();
    let collect = async {
        let mut completed = 0;
        while completed < count {
            let report: Value = reported.recv().await.unwrap();
            // Results are arrays.
            completed += usize::from(report.is_object());
            results.push(report);
        }
        stop.cancel();
    };
    let both = async { tokio::join!(running, collect) };
    let (outcome, ()) = timeout(Duration::from_mins(1), both).await.expect("the engine ends");
    outcome.unwrap();
    (results, downloads.load(Ordering::Relaxed))
}

fn config_at(config: Config, url: &str) -> Config {
    let account = assay_client::Account { url: url.parse().unwrap(), ..config.account };
    Config { account, parallel: 1, ..config }
}

fn lease(files: Vec<LeasedFile>) -> Lease {
    // As an import may have it.
    let input_file_id = Some(ID.to_uppercase());
    let mut plan = AutomatedTestPlan { input_file_id, ..Default::default() };
    plan.set_test_type(TestType::Default);
    Lease { files, test_plan: Some(plan), ..super::lease(super::LEASE) }
}

fn abc(_: &HeaderMap) -> Response {
    "abc".into_response()
}

/// Returns a body of these bytes, after which the connection breaks.
fn breaking(bytes: &'static [u8]) -> Body {
    let piece = stream::iter([Ok(Bytes::from_static(bytes))]);
    // The bytes leave the server before the connection breaks.
    let end = stream::once(async {
        sleep(Duration::from_millis(200)).await;
        Err(std::io::Error::other("broken"))
    });
    Body::from_stream(piece.chain(end))
}

/// Returns the text of the step of a result.
fn text(report: &Value) -> &str {
    report[0]["Steps"][0]["ActualResult"].as_str().unwrap_or_default()
}

/// Returns settings with a cache in this folder, and a command that prints its input file.
fn with_cache(folder: &Path) -> Config {
    let cache = Some(folder.to_owned());
    Config { cache, ..config("http://127.0.0.1", "cat \"$ASSAY_INPUT_FILE\"; ls \"$ASSAY_FILES\"") }
}

fn kept(folder: &Path) -> PathBuf {
    folder.join(ABC)
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_downloaded_once_and_survive_the_engine() {
    let folder = tempfile::tempdir().unwrap();
    let two = vec![file(ID, "a.txt", 3), file(OTHER, "../b", 3)];
    let (results, downloads) =
        run(with_cache(folder.path()), vec![two.clone(), two.clone()], abc).await;
    assert_eq!(downloads, 1, "both files have the same contents");
    assert_eq!(text(&results[0]), format!("abc{OTHER}\na.txt"));
    assert_eq!(text(&results[2]), text(&results[0]));
    let (_, downloads) = run(with_cache(folder.path()), vec![two.clone()], abc).await;
    assert_eq!(downloads, 0);

    // A file that was changed is downloaded again, by this engine and by the next one.
    let spoil = Config {
        command: ["sh", "-c", "chmod u+w \"$ASSAY_INPUT_FILE\"; echo x >\"$ASSAY_INPUT_FILE\""]
            .map(Into::into)
            .into(),
        ..with_cache(folder.path())
    };
    let (_, downloads) = run(spoil, vec![two.clone(), two.clone()], abc).await;
    assert_eq!(downloads, 1);
    let (results, downloads) = run(with_cache(folder.path()), vec![two], abc).await;
    assert_eq!((downloads, &text(&results[0])[..3]), (1, "abc"));
    let left: Vec<_> = std::fs::read_dir(folder.path().join("assay-tests")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_not_the_announced_one_is_an_error_of_its_test_alone() {
    let folder = tempfile::tempdir().unwrap();
    let [wrong, short, good] = [3, 5, 3].map(|size| file(ID, "a", size));
    let bad_hash = LeasedFile { sha256: "0".repeat(64), ..wrong.clone() };
    let path = LeasedFile { sha256: "../../../../etc/passwd".to_owned(), ..wrong.clone() };
    let large = LeasedFile { size: 2 << 30, ..wrong.clone() };
    let no_id = LeasedFile { id: "x/../../y".to_owned(), ..wrong };
    let tests = [bad_hash, path, large, no_id, short, good].map(|file| vec![file]).into();

    let (results, _) = run(with_cache(folder.path()), tests, abc).await;

    let shown: Vec<_> = results.iter().filter(|report| report.is_array()).map(text).collect();
    for (text, expected) in shown.iter().zip([
        "its SHA-256 is ba78",
        "its SHA-256 is not valid",
        "ASSAY_ENGINE_CACHE_GIB",
        "its id is not a UUID",
        "it has 3 bytes instead of 5",
        "abca",
    ]) {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let outcomes: Vec<_> =
        results.iter().filter(|report| report.is_array()).map(|it| &it[0]["Result"]).collect();
    assert_eq!(outcomes, ["Error", "Error", "Error", "Error", "Error", "Passed"]);
    let is_failure = |report: &&Value| report["EngineFailure"] == true;
    assert_eq!(results.iter().find(is_failure), None);
    assert!(kept(folder.path()).exists());
    let parts = std::fs::read_dir(folder.path()).unwrap().flatten();
    let mut parts =
        parts.filter(|entry| entry.file_name().to_string_lossy().starts_with("assay-part-"));
    assert!(parts.next().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_a_test_are_downloaded_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let both = Arc::new(Barrier::new(2));
    // Neither response has contents before both files were requested.
    let together = move |_: &HeaderMap| {
        let both = both.clone();
        let contents = stream::once(async move {
            both.wait().await;
            Ok::<_, std::io::Error>(Bytes::from_static(b"abc"))
        });
        Body::from_stream(contents).into_response()
    };
    let other = LeasedFile { sha256: "0".repeat(64), ..file(OTHER, "b", 3) };
    let tests = vec![vec![file(ID, "a", 3), other]];
    let (results, downloads) = run(with_cache(folder.path()), tests, together).await;
    assert!(text(&results[0]).contains("its SHA-256 is ba78"), "{results:?}");
    assert_eq!(downloads, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_or_endless_file_is_an_error_of_its_test() {
    let folder = tempfile::tempdir().unwrap();
    let missing = |_: &HeaderMap| {
        (StatusCode::NOT_FOUND, Json(json!({"code": "not_found", "detail": "no such file"})))
            .into_response()
    };
    let (results, downloads) =
        run(with_cache(folder.path()), vec![vec![file(ID, "a", 3)]], missing).await;
    assert!(text(&results[0]).contains("no such file"), "{results:?}");
    assert_eq!(downloads, 1);
    let endless = |_: &HeaderMap| {
        let chunks = stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(b"abc")));
        Body::from_stream(chunks).into_response()
    };
    let (results, downloads) =
        run(with_cache(folder.path()), vec![vec![file(ID, "a", 3)]], endless).await;
    assert!(text(&results[0]).contains("more than"), "{results:?}");
    assert_eq!(downloads, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_is_continued_where_it_broke_off() {
    let folder = tempfile::tempdir().unwrap();
    let broken = |headers: &HeaderMap| {
        if let Some(range) = headers.get(RANGE) {
            assert_eq!(range, "bytes=2-");
            (StatusCode::PARTIAL_CONTENT, "c").into_response()
        } else {
            ([("content-length", "3")], breaking(b"ab")).into_response()
        }
    };
    let (results, downloads) =
        run(with_cache(folder.path()), vec![vec![file(ID, "a", 3)]], broken).await;
    assert_eq!((text(&results[0]), downloads), ("abca", 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_that_breaks_off_after_its_last_byte_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let broken = |headers: &HeaderMap| {
        if headers.contains_key(RANGE) {
            return StatusCode::RANGE_NOT_SATISFIABLE.into_response();
        }
        breaking(b"abc").into_response()
    };
    let (results, downloads) =
        run(with_cache(folder.path()), vec![vec![file(ID, "a", 3)]], broken).await;
    assert_eq!((text(&results[0]), downloads), ("abca", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_gets_its_file_after_a_restart_of_assay() {
    let folder = tempfile::tempdir().unwrap();
    let requests = Arc::new(AtomicUsize::new(0));
    let restarted = move |_: &HeaderMap| {
        if requests.fetch_add(1, Ordering::Relaxed) < 5 {
            StatusCode::SERVICE_UNAVAILABLE.into_response()
        } else {
            "abc".into_response()
        }
    };
    let (results, downloads) =
        run(with_cache(folder.path()), vec![vec![file(ID, "a", 3)]], restarted).await;
    assert_eq!((text(&results[0]), downloads), ("abca", 6));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_engines_do_not_share_a_cache_and_none_downloads_without_one() {
    let folder = tempfile::tempdir().unwrap();
    let lock = std::fs::File::create(folder.path().join("assay-lock")).unwrap();
    lock.lock().unwrap();
    let refused = assay_engine::run(with_cache(folder.path()), CancellationToken::new()).await;
    let refused = format!("{:#}", refused.unwrap_err());
    assert!(refused.contains("another engine uses it"), "{refused}");
    drop(lock);

    let unused = folder.path().join("unused");
    let none = Config { cache_gib: 0, ..with_cache(&unused) };
    let none = Config {
        command: ["sh", "-c", "echo \"[$ASSAY_FILES$ASSAY_INPUT_FILE]\""].map(Into::into).into(),
        ..none
    };
    let (results, downloads) = run(none, vec![vec![file(ID, "a", 3)]], abc).await;
    assert_eq!((text(&results[0]), downloads), ("[]", 0));
    assert!(!unused.exists());
}
