//! Servers that export something else than a project.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use axum::{
    body::{Body, Bytes},
    http::StatusCode,
    response::IntoResponse,
};
use futures::stream;
use serde_json::json;

use crate::{
    export,
    server::{EXECUTION, PROJECT, Server, artifact, json, link},
};

/// Returns all files below a folder.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path.display().to_string());
        }
    }
    found
}

#[tokio::test]
async fn a_project_is_exported() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new().await;
    export(&server.url, &folder.path().join("out")).await.unwrap();
    let file = folder.path().join(format!("out/executions/{EXECUTION}/files/log.txt"));
    assert_eq!(fs::read_to_string(file).unwrap(), "contents");
}

#[tokio::test]
async fn a_continued_export_has_the_executions_that_have_ended_meanwhile() {
    const IDS: [&str; 3] =
        [EXECUTION, "019cade2-11c0-7b21-8d4f-0a96c3e15f12", "019cade2-11c0-7b21-8d4f-0a96c3e15f22"];
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    for is_continued in [false, true] {
        // The first execution is still running, and the export is interrupted at the last one.
        let server = Server::with(move |path| {
            let at = format!("/api/projects/{PROJECT}/executions");
            if path == format!("{at}?limit=1000") {
                return Some(json(json!(IDS.map(|id| json!({"Id": id})))));
            }
            let number = IDS.iter().position(|id| path == format!("{at}/{id}"))?;
            if number == 2 && !is_continued {
                return Some(StatusCode::FORBIDDEN.into_response());
            }
            let has_ended = number > 0 || is_continued;
            let end = has_ended.then_some("2026-11-23T12:00:00Z");
            let execution =
                json!({"Id": IDS[number], "CompletionDateTime": end, "TestReports": []});
            Some(json(execution))
        });
        let exported = export(&server.await.url, &out).await;
        assert_eq!(exported.is_ok(), is_continued, "{exported:?}");
    }
    let executions = fs::read_to_string(out.join("executions.ndjson")).unwrap();
    for id in IDS {
        assert_eq!(executions.matches(id).count(), 1, "{id}: {executions}");
    }
}

#[tokio::test]
async fn no_name_of_an_artifact_leaves_the_folder() {
    let long = "x".repeat(300);
    for name in [
        "../../../../escaped",
        "/tmp/assay-escaped",
        "a/b",
        "a\\b",
        "..",
        ".hidden",
        "",
        "a\n::error::b",
        "a\u{0}b",
        &long,
    ] {
        let folder = tempfile::tempdir().unwrap();
        let hostile = name.to_owned();
        let server = Server::with(move |path| {
            path.contains("/results/artifacts?").then(|| artifact(&hostile, &link("log.txt")))
        });
        let out = folder.path().join("out");
        let failure = export(&server.await.url, &out).await.unwrap_err();
        assert!(failure.contains("name"), "{name:?}: {failure}");
        assert!(!failure.contains(['\n', '\0']), "{failure:?}");
        assert!(!Path::new("/tmp/assay-escaped").exists());
        let outside: Vec<_> = files(folder.path());
        assert!(
            outside.iter().all(|file| file.starts_with(out.to_str().unwrap())),
            "{name:?}: {outside:?}"
        );
        assert!(!outside.iter().any(|file| file.contains("/files/")), "{name:?}: {outside:?}");
    }
}

#[tokio::test]
async fn only_links_to_the_artifact_itself_are_followed() {
    for uri in [
        "https://evil.example/x/api/users/current/tokens",
        "file:///api/artifacts/secret",
        "/api/artifacts/../users/current",
        "https://public.example/api/artifacts/019cade2-11c0-7b21-8d4f-0a96c3e15fff/log.txt?signature=1",
        "https://public.example/api/artifacts/019cade2-11c0-7b21-8d4f-0a96c3e15f03/../../users/log.txt",
        "not a link",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::with(move |path| {
            path.contains("/results/artifacts?").then(|| artifact("log.txt", uri))
        });
        let server = server.await;
        let failure = export(&server.url, &folder.path().join("out")).await.unwrap_err();
        assert!(failure.contains("link"), "{uri}: {failure}");
        let received = server.received();
        let last = received.last().unwrap();
        assert!(last.contains("/results/artifacts"), "{uri}: {last}");
    }
}

#[tokio::test]
async fn a_link_that_has_expired_is_renewed_once() {
    for valid in ["signature=2", "signature=3"] {
        let (folder, lists) = (tempfile::tempdir().unwrap(), AtomicUsize::new(0));
        let server = Server::with(move |path| {
            if path.contains("/results/artifacts?") {
                let is_first = lists.fetch_add(1, Ordering::Relaxed) == 0;
                let expired = link("log.txt").replace("signature=2", "signature=1");
                return is_first.then(|| artifact("log.txt", &expired));
            }
            let is_refused = path.starts_with("/api/artifacts/") && !path.ends_with(valid);
            is_refused.then(|| StatusCode::FORBIDDEN.into_response())
        });
        let server = server.await;
        let exported = export(&server.url, &folder.path().join("out")).await;
        assert_eq!(exported.is_ok(), valid == "signature=2", "{exported:?}");
        let received = server.received();
        let count = received.iter().filter(|one| one.starts_with("GET /api/artifacts/")).count();
        assert_eq!(count, 2, "{received:?}");
    }
}

#[tokio::test]
async fn an_artifact_has_the_size_that_the_list_states() {
    for (contents, problem) in
        [("content", "7 bytes have arrived instead of 8"), ("contents.", "more than 8 bytes")]
    {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::with(move |path| {
            path.starts_with("/api/artifacts/").then(|| contents.into_response())
        });
        let failure = export(&server.await.url, &folder.path().join("out")).await.unwrap_err();
        assert!(failure.contains(problem), "{failure}");
    }
}

#[tokio::test]
async fn ids_are_not_paths() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with(|path| {
        let is_list = path.starts_with("/api/projects?");
        is_list.then(|| json(json!([{"Id": "x/../../users", "Name": "shop"}])))
    });
    let server = server.await;
    export(&server.url, &folder.path().join("out")).await.unwrap_err();
    let received = server.received();
    assert!(received.iter().all(|one| one.contains("/api/projects?")), "{received:?}");
}

#[tokio::test]
async fn pages_without_an_end_are_refused() {
    for endless in ["/api/projects", "/subjects", "/results/artifacts"] {
        for records in [json!([]), json!([{"Id": PROJECT, "Name": "other"}])] {
            let folder = tempfile::tempdir().unwrap();
            let records = if endless == "/results/artifacts" { json!([]) } else { records };
            let count = std::sync::atomic::AtomicU64::new(0);
            let server = Server::with(move |path| {
                if !path.split('?').next().unwrap().ends_with(endless) {
                    return None;
                }
                let count = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let next = format!("<{endless}?cursor={}>; rel=\"next\"", count.min(3));
                Some(([("link", next)], axum::Json(records.clone())).into_response())
            });
            let failure = export(&server.await.url, &folder.path().join("out")).await.unwrap_err();
            assert!(failure.contains("pages"), "{endless}: {failure}");
        }
    }
}

#[tokio::test]
async fn answers_without_an_end_are_refused() {
    for (endless, chunk) in [
        ("/api/projects", b' '),
        ("/subjects", b'['),
        ("/testcases", b' '),
        (EXECUTION, b' '),
        ("/results", b'x'),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::with(move |path| {
            path.split('?').next().unwrap().ends_with(endless).then(|| {
                let chunk = Bytes::from(vec![chunk; 1 << 20]);
                let chunks = stream::repeat_with(move || Ok::<_, std::io::Error>(chunk.clone()));
                Body::from_stream(chunks).into_response()
            })
        });
        let failure = export(&server.await.url, &folder.path().join("out")).await.unwrap_err();
        assert!(
            failure.contains("more than") || failure.contains("recursion"),
            "{endless}: {failure}"
        );
    }
}

#[tokio::test]
async fn the_token_does_not_follow_a_redirect() {
    let folder = tempfile::tempdir().unwrap();
    let other = Server::new().await;
    let to = other.url.clone();
    let server = Server::with(move |path| {
        Some((StatusCode::FOUND, [("location", format!("{to}{path}"))]).into_response())
    });
    let failure = export(&server.await.url, &folder.path().join("out")).await.unwrap_err();
    assert!(failure.contains(&format!("redirects to {}", other.url)), "{failure}");
    assert!(other.received().is_empty(), "{:?}", other.received());
}

#[cfg(unix)]
#[tokio::test]
async fn links_in_the_folder_are_not_written_through() {
    let server = Server::new().await;
    for (link, is_folder) in [
        ("executions".to_owned(), true),
        (format!("executions/{EXECUTION}"), true),
        (format!("executions/{EXECUTION}/files"), true),
        ("subjects.ndjson.part".to_owned(), false),
        ("files.ndjson.part".to_owned(), false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (out, target) = (folder.path().join("out"), folder.path().join("elsewhere"));
        fs::create_dir_all(out.join(&link).parent().unwrap()).unwrap();
        if is_folder {
            fs::create_dir(&target).unwrap();
        } else {
            fs::write(&target, "before").unwrap();
        }
        std::os::unix::fs::symlink(&target, out.join(&link)).unwrap();
        let _ = export(&server.url, &out).await;
        if is_folder {
            assert_eq!(files(&target), Vec::<String>::new(), "{link}");
        } else {
            assert_eq!(fs::read_to_string(&target).unwrap(), "before", "{link}");
        }
    }
}
