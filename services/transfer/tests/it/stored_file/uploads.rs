//! Uploads of files by imports.

use std::{
    fs,
    sync::atomic::{AtomicUsize, Ordering},
};

use axum::{
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use serde_json::json;

use crate::{
    import,
    import::{Forged, SECRET, line, refused},
    server::{ABC, EXECUTION, FILE, PROJECT, Server, json as answer, stored_file},
};

/// Id of an upload that has begun.
const UPLOAD: &str = "019cade2-11c0-7b21-8d4f-0a96c3e15f05";

/// Forges an export with a subject that refers to a file, and this record of the file.
fn with_stored(file: &serde_json::Value) -> Forged {
    let mut forged = Forged::new();
    forged.add("storedfiles.ndjson", &line(file));
    forged.add(&format!("storedfiles/{FILE}"), "abc");
    let subject = json!({"Id": EXECUTION, "Name": "Shop", "SoftwareFileId": FILE});
    forged.add("subjects.ndjson", &line(&subject));
    forged
}

/// Returns the answer about an upload that has this number of bytes, and may have become a file.
fn state(offset: usize, file: Option<&str>) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert("upload-offset", offset.into());
    if let Some(file) = file {
        headers.insert("assay-file-id", file.parse().unwrap());
    }
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// Starts a server for an import into a project with these files. It gives these answers to requests for the upload that
/// has begun, from the number of the request.
async fn importing(
    existing: serde_json::Value,
    appended: impl Fn(usize) -> Response + Send + Sync + 'static,
) -> Server {
    let count = AtomicUsize::new(0);
    let answer = move |path: &str| {
        let of_project = |noun: &str| path == format!("/api/projects/{PROJECT}/{noun}");
        if of_project("files?limit=1000") {
            return Some(answer(existing.clone()));
        }
        if of_project("uploads") {
            let location = [("location", format!("/api/projects/{PROJECT}/uploads/{UPLOAD}"))];
            return Some((location, state(0, None)).into_response());
        }
        if of_project(&format!("uploads/{UPLOAD}")) {
            return Some(appended(count.fetch_add(1, Ordering::Relaxed)));
        }
        of_project("subjects").then(|| answer(json!({"Id": PROJECT})))
    };
    Server::with(answer).await
}

/// Imports an export into a project with these files. Returns the requests.
async fn imported(forged: &Forged, existing: serde_json::Value) -> Vec<String> {
    forged.complete();
    let server = importing(existing, |_| state(3, Some(PROJECT))).await;
    import(&server.url, &forged.export()).await.unwrap();
    server.received()
}

/// Returns the requests to begin uploads.
fn begun(received: &[String]) -> Vec<&String> {
    let uploads = format!("POST /api/projects/{PROJECT}/uploads ");
    received.iter().filter(|one| one.starts_with(&uploads)).collect()
}

/// Returns the requests that append to the upload.
fn pieces(received: &[String]) -> Vec<&String> {
    let upload = format!("PATCH /api/projects/{PROJECT}/uploads/{UPLOAD} ");
    received.iter().filter(|one| one.starts_with(&upload)).collect()
}

#[tokio::test]
async fn a_file_is_uploaded_with_its_digest_and_records_refer_to_the_new_one() {
    let forged = with_stored(&stored_file("Prüfplan 2.msi", 3, ABC));
    let received = imported(&forged, json!([])).await;
    let (uploads, pieces) = (begun(&received), pieces(&received));
    assert_eq!((uploads.len(), pieces.len()), (1, 1));
    for part in [
        "\"tus-resumable\": \"1.0.0\"",
        "\"repr-digest\": \"sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=:\"",
        "\"upload-metadata\": \"filename UHLDvGZwbGFuIDIubXNp,filetype YXBwbGljYXRpb24veC1tc2k=\"",
        "\"upload-length\": \"3\"",
    ] {
        assert!(uploads[0].contains(part), "{part}: {}", uploads[0]);
    }
    for part in [
        "\"tus-resumable\": \"1.0.0\"",
        "\"upload-offset\": \"0\"",
        "\"content-type\": \"application/offset+octet-stream\"",
        "\"content-length\": \"3\"",
    ] {
        assert!(pieces[0].contains(part), "{part}: {}", pieces[0]);
    }
    assert!(pieces[0].ends_with(" abc"), "{}", pieces[0]);
    let subjects = format!("POST /api/projects/{PROJECT}/subjects ");
    let subject = received.iter().find(|one| one.starts_with(&subjects)).unwrap();
    let reference = format!("\"SoftwareFileId\":\"{PROJECT}\"");
    assert!(subject.contains(&reference), "{subject}");
}

#[tokio::test]
async fn an_upload_that_breaks_off_is_continued() {
    let forged = with_stored(&stored_file("a.msi", 3, ABC));
    forged.complete();
    let server = importing(json!([]), |number| match number {
        0 => StatusCode::BAD_GATEWAY.into_response(),
        1 => state(1, None),
        // The request whose connection has broken still holds the upload.
        2 => (StatusCode::CONFLICT, answer(json!({"code": "upload_in_use"}))).into_response(),
        3 => state(2, None),
        _ => state(3, Some(FILE)),
    });
    let server = server.await;
    import(&server.url, &forged.export()).await.unwrap();
    let received = server.received();
    let pieces = pieces(&received);
    assert_eq!((begun(&received).len(), pieces.len()), (1, 3));
    for (piece, (offset, rest)) in pieces.iter().zip([(0, " abc"), (1, " bc"), (2, " c")]) {
        let offset = format!("\"upload-offset\": \"{offset}\"");
        assert!(piece.contains(&offset) && piece.ends_with(rest), "{piece}");
    }
    let reference = format!("\"SoftwareFileId\":\"{FILE}\"");
    assert!(received.iter().any(|one| one.contains(&reference)), "{received:#?}");
}

/// Returns the number of requests for the upload with this method.
fn count(received: &[String], method: &str) -> usize {
    let upload = format!("{method} /api/projects/{PROJECT}/uploads/{UPLOAD} ");
    received.iter().filter(|one| one.starts_with(&upload)).count()
}

#[tokio::test]
async fn the_next_import_continues_an_upload() {
    let forged = with_stored(&stored_file("a.msi", 3, ABC));
    forged.complete();
    let broken = importing(json!([]), |number| match number {
        0 => state(1, None),
        _ => StatusCode::FORBIDDEN.into_response(),
    });
    import(&broken.await.url, &forged.export()).await.unwrap_err();

    let server = importing(json!([]), |number| match number {
        0 => state(1, None),
        1 => state(2, None),
        _ => StatusCode::FORBIDDEN.into_response(),
    });
    let server = server.await;
    import(&server.url, &forged.export()).await.unwrap_err();
    let received = server.received();
    assert_eq!(
        (begun(&received).len(), count(&received, "HEAD"), pieces(&received).len()),
        (0, 1, 2)
    );
    let piece = pieces(&received)[0];
    assert!(piece.contains("\"upload-offset\": \"1\"") && piece.ends_with(" bc"), "{piece}");

    // An upload that has expired, or whose file has been deleted, begins again.
    for gone in [None, Some(EXECUTION)] {
        let server = importing(json!([]), move |number| match (number, gone) {
            (0, None) => StatusCode::NOT_FOUND.into_response(),
            (0, Some(file)) => state(3, Some(file)),
            _ => state(3, Some(FILE)),
        });
        let server = server.await;
        import(&server.url, &forged.export()).await.unwrap();
        let received = server.received();
        assert_eq!(
            (begun(&received).len(), count(&received, "HEAD"), pieces(&received).len()),
            (1, 1, 1)
        );
        let reference = format!("\"SoftwareFileId\":\"{FILE}\"");
        assert!(received.iter().any(|one| one.contains(&reference)), "{received:#?}");
    }
}

#[tokio::test]
async fn an_upload_of_which_assay_has_lost_a_part_is_deleted() {
    let forged = with_stored(&stored_file("a.msi", 3, ABC));
    forged.complete();
    let server = importing(json!([]), |number| match number {
        0 => state(1, None),
        1 => (StatusCode::CONFLICT, answer(json!({"code": "upload_part_missing"}))).into_response(),
        _ => StatusCode::NO_CONTENT.into_response(),
    });
    let server = server.await;
    let failure = import(&server.url, &forged.export()).await.unwrap_err();
    assert!(failure.contains("upload_part_missing"), "{failure}");
    assert_eq!(count(&server.received(), "DELETE"), 1);
}

#[tokio::test]
async fn an_upload_that_cannot_become_the_file_fails_the_import() {
    let forged = with_stored(&stored_file("a.msi", 3, ABC));
    forged.complete();
    for (number, expected) in
        ["422", "does not grow", "is not complete", "Upload-Offset"].into_iter().enumerate()
    {
        let server = importing(json!([]), move |_| match number {
            0 => StatusCode::UNPROCESSABLE_ENTITY.into_response(),
            1 => state(0, None),
            2 => state(3, None),
            _ => StatusCode::NO_CONTENT.into_response(),
        });
        let failure = import(&server.await.url, &forged.export()).await.unwrap_err();
        assert!(failure.contains(expected), "{expected}: {failure}");
    }
}

#[tokio::test]
async fn a_file_that_the_project_has_is_not_uploaded_again() {
    let file = stored_file("a.msi", 3, ABC);
    let forged = with_stored(&file);
    let mut existing = file.clone();
    existing["Id"] = json!(EXECUTION);
    let received = imported(&forged, json!([existing])).await;
    assert!(begun(&received).is_empty(), "{received:#?}");
    let reference = format!("\"SoftwareFileId\":\"{EXECUTION}\"");
    assert!(received.iter().any(|one| one.contains(&reference)), "{received:#?}");

    // Another name is another file.
    existing["Name"] = json!("b.msi");
    fs::remove_file(forged.export().join(format!("imported-{PROJECT}.txt"))).unwrap();
    let received = imported(&forged, json!([existing])).await;
    assert_eq!(begun(&received).len(), 1, "{received:#?}");
}

#[tokio::test]
async fn a_file_that_is_not_that_of_its_record_is_not_imported() {
    for (field, value) in [
        ("Sha256", json!("0".repeat(64))),
        ("Size", json!(4)),
        ("Id", json!("../../secret")),
        ("Id", json!(EXECUTION)),
        ("Id", json!("")),
    ] {
        let mut file = stored_file("a", 3, ABC);
        file[field] = value.clone();
        let forged = with_stored(&file);
        forged.complete();
        refused(&forged.export(), &format!("{field}: {value}")).await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_in_place_of_a_file_is_not_followed() {
    let mut forged = with_stored(&stored_file("a", SECRET.len() as u64, ABC));
    forged.add(&format!("storedfiles/{FILE}"), SECRET);
    let file = forged.export().join(format!("storedfiles/{FILE}"));
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(forged.folder.path().join("secret"), &file).unwrap();
    forged.complete();
    let failure = refused(&forged.export(), "a link").await;
    assert!(failure.contains("symbolic link"), "{failure}");
}
