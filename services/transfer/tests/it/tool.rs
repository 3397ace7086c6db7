//! Files and servers of other tools.

use std::fs;

use axum::{http::StatusCode, response::IntoResponse};
use serde_json::json;
use tempfile::TempDir;

use crate::{
    import,
    import::{SECRET, refused},
    run,
    server::{EXECUTION, Server, json as answer},
};

/// Returns a folder with a secret.
fn with_secret() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("secret"), SECRET).unwrap();
    folder
}

#[tokio::test]
async fn logs_of_a_file_of_reportportal_do_not_name_other_files() {
    let folder = with_secret();
    let secret = folder.path().join("secret");
    let item = json!([{
        "id": 2, "launchId": 12, "type": "STEP", "name": "pays", "status": "FAILED",
        "hasStats": true, "logs": [{
            "level": "ERROR", "message": "lost",
            "file": {"path": secret, "id": "abc", "contentType": "text/plain"},
        }],
    }]);
    let file = folder.path().join("items.json");
    fs::write(&file, item.to_string()).unwrap();
    for id in ["abc", "/../secret", "../secret", ""] {
        fs::write(&file, item.to_string().replace("abc", id)).unwrap();
        let failure = refused(&file, id).await;
        assert!(failure.contains("/file-") || failure.contains("not a valid name"), "{failure}");
    }
    fs::write(&file, item.to_string()).unwrap();
    fs::write(folder.path().join("file-abc"), "a log").unwrap();
    let server = Server::with(|path| {
        path.ends_with("/testsets").then(|| answer(json!({"Id": EXECUTION, "Name": "12"})))
    });
    let server = server.await;
    import(&server.url, &file).await.unwrap();
    assert!(server.received().iter().any(|one| one.ends_with("a log")));
}

#[tokio::test]
async fn credentials_of_another_tool_do_not_follow_a_redirect() {
    let folder = tempfile::tempdir().unwrap();
    let other = Server::new().await;
    for format in ["reportportal", "kiwi"] {
        let to = other.url.clone();
        let tool = Server::with(move |path| {
            let location = [("location", format!("{to}{path}"))];
            Some((StatusCode::TEMPORARY_REDIRECT, location).into_response())
        });
        let tool = tool.await;
        let work = folder.path().join(format);
        let arguments = [
            "import",
            "--from",
            &tool.url,
            "--format",
            format,
            "--source-project",
            "shop",
            "--source-user",
            "ada",
            "--source-token",
            "other-secret",
            "--work",
            work.to_str().unwrap(),
        ];
        let failure = run(&other.url, &arguments).await.unwrap_err();
        assert!(failure.contains(&format!("redirects to {}", other.url)), "{failure}");
    }
    assert!(other.received().is_empty(), "{:?}", other.received());
}

#[cfg(unix)]
#[tokio::test]
async fn links_in_a_folder_of_another_tool_are_left_out() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().unwrap();
    let tool = folder.path().join("tool");
    fs::create_dir(&tool).unwrap();
    let launch =
        json!([{"id": 12, "name": SECRET, "number": 3, "mode": "DEFAULT", "startTime": 1}]);
    fs::write(folder.path().join("launch.json"), launch.to_string()).unwrap();
    symlink(folder.path().join("launch.json"), tool.join("launch.json")).unwrap();
    for circle in ["a", "b"] {
        symlink(&tool, tool.join(circle)).unwrap();
    }
    let failure = refused(&tool, "links").await;
    assert!(failure.contains("no file of a known format"), "{failure}");
}

#[tokio::test]
async fn answers_of_another_tool_that_are_of_the_wrong_type_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let odd = StatusCode::from_u16(700).unwrap();
    for (number, status, body) in [
        (1, StatusCode::OK, json!([])),
        (2, StatusCode::OK, json!(1)),
        (3, StatusCode::OK, json!({"result": "session", "content": [1]})),
        (4, StatusCode::OK, json!({"result": {}, "content": {}})),
        (5, odd, json!({})),
    ] {
        let tool =
            Server::with(move |_| Some((status, answer(body.clone())).into_response())).await;
        for format in ["reportportal", "kiwi"] {
            let work = folder.path().join(format!("{format}-{number}"));
            let arguments = [
                "import",
                "--from",
                &tool.url,
                "--format",
                format,
                "--source-project",
                "shop",
                "--source-user",
                "ada",
                "--source-token",
                "s",
                "--work",
                work.to_str().unwrap(),
            ];
            run(&tool.url, &arguments).await.unwrap_err();
        }
    }
}
