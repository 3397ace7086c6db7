//! Files of projects: downloads that break off, and contents that are not those of their records.

mod uploads;

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use axum::{
    body::{Body, Bytes},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use futures::{StreamExt, stream};
use serde_json::json;
use tokio::task::yield_now;

use crate::{
    export, run,
    server::{ABC, EXECUTION, FILE, PROJECT, Server, stored_file, with_file},
};

/// Returns whether a request is for the contents of the file.
fn is_download(path: &str) -> bool {
    path == format!("/api/projects/{PROJECT}/files/{FILE}/contents")
}

/// Starts a server whose project has a file with the contents `abc`, and these answers to requests for them, from
/// the number of the request.
async fn with_contents(contents: impl Fn(usize) -> Response + Send + Sync + 'static) -> Server {
    let count = AtomicUsize::new(0);
    let file = stored_file("../web shop.msi", 3, ABC);
    let answer = move |path: &str| {
        if is_download(path) {
            return Some(contents(count.fetch_add(1, Ordering::Relaxed)));
        }
        with_file(path, &file)
    };
    Server::with(answer).await
}

/// Returns an answer that breaks off after these bytes.
fn broken(status: StatusCode, bytes: &'static [u8]) -> Response {
    let chunk = stream::iter([Ok(Bytes::from_static(bytes))]);
    // While the body is pending, the server sends the bytes that it has. It asks for more after that.
    let end = stream::once(async {
        yield_now().await;
        Err(std::io::Error::other("broken off"))
    });
    (status, Body::from_stream(chunk.chain(end))).into_response()
}

fn contents_in(out: &Path) -> String {
    fs::read_to_string(out.join("storedfiles").join(FILE)).unwrap()
}

#[tokio::test]
async fn files_are_exported_under_their_ids() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let server = with_contents(|_| "abc".into_response()).await;
    export(&server.url, &out).await.unwrap();
    assert_eq!(contents_in(&out), "abc");
    let records = fs::read_to_string(out.join("storedfiles.ndjson")).unwrap();
    assert!(records.contains("web shop.msi") && records.lines().count() == 1, "{records}");

    let without = folder.path().join("without");
    let to = without.to_str().unwrap();
    run(&server.url, &["export", "--project", "shop", "--no-files", "--to", to]).await.unwrap();
    assert!(!without.join("storedfiles").exists() && !without.join("storedfiles.ndjson").exists());
}

#[tokio::test]
async fn a_download_that_breaks_off_is_continued() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let server = with_contents(|number| match number {
        0 => broken(StatusCode::OK, b"a"),
        1 => broken(StatusCode::PARTIAL_CONTENT, b"b"),
        _ => (StatusCode::PARTIAL_CONTENT, "c").into_response(),
    });
    let server = server.await;
    export(&server.url, &out).await.unwrap();
    assert_eq!(contents_in(&out), "abc");
    let received = server.received();
    let downloads: Vec<_> = received.iter().filter(|one| one.contains("/contents")).collect();
    assert!(!downloads[0].contains("\"range\""), "{}", downloads[0]);
    for (download, range) in downloads[1..].iter().zip(["bytes=1-", "bytes=2-"]) {
        assert!(download.contains(range) && download.contains(ABC), "{download}");
    }
    assert_eq!(downloads.len(), 3);
}

#[tokio::test]
async fn a_download_begins_again_if_the_server_sends_the_whole_file() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let server = with_contents(|number| match number {
        0 => broken(StatusCode::OK, b"ab"),
        _ => "abc".into_response(),
    });
    export(&server.await.url, &out).await.unwrap();
    assert_eq!(contents_in(&out), "abc");
}

#[tokio::test]
async fn the_next_export_continues_a_download() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    fs::create_dir_all(out.join("storedfiles")).unwrap();
    fs::write(out.join(format!("storedfiles/{FILE}.part")), "ab").unwrap();
    let server = with_contents(|_| (StatusCode::PARTIAL_CONTENT, "c").into_response()).await;
    export(&server.url, &out).await.unwrap();
    assert_eq!(contents_in(&out), "abc");
    let received = server.received();
    let download = received.iter().find(|one| one.contains("/contents")).unwrap();
    assert!(download.contains("bytes=2-"), "{download}");
}

#[tokio::test]
async fn contents_with_another_hash_are_refused_and_not_continued() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    for wrong in ["abd", "ab"] {
        let server = with_contents(|_| wrong.into_response()).await;
        let failure = export(&server.url, &out).await.unwrap_err();
        assert!(failure.contains(ABC) && failure.contains("have arrived instead of"), "{failure}");
        assert!(!out.join("storedfiles").join(FILE).exists());
    }
    let server = with_contents(|_| "abcd".into_response()).await;
    let failure = export(&server.url, &out).await.unwrap_err();
    assert!(failure.contains("more than"), "{failure}");
    let server = with_contents(|_| "abc".into_response()).await;
    export(&server.url, &out).await.unwrap();
    assert_eq!(contents_in(&out), "abc");
}

#[tokio::test]
async fn a_record_that_is_not_that_of_the_file_is_refused() {
    for (field, value) in [
        ("Id", json!("../../escaped")),
        ("Id", json!(EXECUTION)),
        ("Sha256", json!("abc")),
        ("Sha256", json!(ABC.to_uppercase())),
        ("Size", json!(-1)),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut file = stored_file("a", 3, ABC);
        file[field] = value.clone();
        let listed = stored_file("a", 3, ABC);
        let server = Server::with(move |path| {
            let is_list = path.contains('?');
            with_file(path, if is_list { &listed } else { &file })
        });
        let server = server.await;
        export(&server.url, &folder.path().join("out")).await.unwrap_err();
        let received = server.received();
        assert!(!received.iter().any(|one| one.contains("/contents")), "{field}: {value}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_in_place_of_the_folder_is_not_written_through() {
    let folder = tempfile::tempdir().unwrap();
    let (out, elsewhere) = (folder.path().join("out"), folder.path().join("elsewhere"));
    fs::create_dir(&out).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, out.join("storedfiles")).unwrap();
    let server = with_contents(|_| "abc".into_response()).await;
    export(&server.url, &out).await.unwrap_err();
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}
