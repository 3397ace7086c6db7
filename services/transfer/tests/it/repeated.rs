//! Imports that are repeated after users have changed what the first one created.

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::response::Response;
use serde_json::json;

use crate::{
    import,
    import::{Forged, line},
    server::{PROJECT, Server, json as answer},
};

const CASE: &str = "019cade2-11c0-7b21-8d4f-0a96c3e15f11";
const MASTER: &str = "019cade2-11c0-7b21-8d4f-0a96c3e15f12";
const NIGHTLY: &str = "019cade2-11c0-7b21-8d4f-0a96c3e15f13";

/// Returns an export with an archived test case, a set with it, and a set that only runs name.
fn forged() -> Forged {
    let mut forged = Forged::new();
    let case = json!({"Id": "PAY", "Identifier": "PAY", "Name": "Pay", "Archived": true});
    forged.add("testcases.ndjson", &line(&case));
    let master = json!({"Id": "Master", "Name": "Master", "TestCases": ["PAY"]});
    let sets = [line(&master), line(&json!({"Id": "Nightly", "Name": "Nightly"}))];
    forged.add("testsets.ndjson", &sets.concat());
    forged.complete();
    forged
}

/// Returns the answers of a project that is empty, and creates what is requested in the order of the export.
fn empty(path: &str, created: &AtomicUsize) -> Option<Response> {
    let at = format!("/api/projects/{PROJECT}");
    if path == format!("{at}/testcases/import") {
        return Some(answer(json!([{"Id": CASE, "Identifier": "PAY"}])));
    }
    (path == format!("{at}/testsets")).then(|| {
        let id = [MASTER, NIGHTLY][created.fetch_add(1, Ordering::Relaxed)];
        answer(json!({"Id": id}))
    })
}

/// Returns the answers of a project after the import, whose test case a user has taken out of the archive.
fn changed(path: &str) -> Option<Response> {
    let at = format!("/api/projects/{PROJECT}");
    let sets = json!([{"Id": MASTER, "Name": "Master"}, {"Id": NIGHTLY, "Name": "Nightly"}]);
    let lists = [
        (format!("{at}/testcases?limit=1000"), json!([{"Id": CASE, "Identifier": "PAY"}])),
        (format!("{at}/testsets?limit=1000"), sets),
    ];
    lists.into_iter().find_map(|(list, records)| (path == list).then(|| answer(records)))
}

/// Returns the paths and bodies of the changes that a server has received.
fn changes(server: &Server) -> Vec<(String, String)> {
    let received = server.received();
    let changes = received.iter().filter(|one| !one.starts_with("GET "));
    let parts = |one: &String| {
        let path = one.split(' ').nth(1).unwrap_or_default();
        let body = one.rsplit_once("} ").map_or("", |(_, body)| body);
        (path.replace(&format!("/api/projects/{PROJECT}/"), ""), body.to_owned())
    };
    changes.map(parts).collect()
}

#[tokio::test]
async fn a_repeated_import_keeps_what_users_have_changed() {
    let forged = forged();
    let created = AtomicUsize::new(0);
    let first = Server::with(move |path| empty(path, &created)).await;
    import(&first.url, &forged.export()).await.unwrap();
    let sent = changes(&first);
    let members = sent.iter().filter(|(_, body)| body.contains("TestCases"));
    let members: Vec<_> = members.map(|(path, _)| path.clone()).collect();
    assert_eq!(members, [format!("testsets/{MASTER}")], "{sent:#?}");
    let archived = sent.iter().filter(|(_, body)| body.contains("Archived"));
    let archived: Vec<_> = archived.map(|(path, _)| path.clone()).collect();
    assert_eq!(archived, [format!("testcases/{CASE}")], "{sent:#?}");

    let second = Server::with(changed).await;
    import(&second.url, &forged.export()).await.unwrap();
    let members = format!("[{{\"Id\":\"{CASE}\"}}]");
    assert_eq!(changes(&second), [(format!("testsets/{MASTER}/testcases"), members)]);
}
