//! Exports that were written to read the files of the machine that imports them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use axum::{http::StatusCode, response::IntoResponse};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    import,
    server::{EXECUTION, Server, json as answer},
};

pub(crate) const SECRET: &str = "the secret of the machine";

/// An export in a folder, beside which a secret is.
pub(crate) struct Forged {
    pub(crate) folder: TempDir,
    files: Vec<(String, String)>,
}

impl Forged {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("secret"), SECRET).unwrap();
        let mut forged = Self { folder, files: Vec::new() };
        forged.add("project.ndjson", "{\"Name\":\"shop\"}\n");
        forged
    }

    pub(crate) fn export(&self) -> PathBuf {
        self.folder.path().join("export")
    }

    /// Adds a file that the list names.
    pub(crate) fn add(&mut self, path: &str, contents: &str) {
        let file = self.export().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, contents).unwrap();
        self.files.push((path.to_owned(), contents.to_owned()));
    }

    /// Adds an execution with a file of this name.
    fn execution(&mut self, id: &str, name: &str) {
        self.add("executions.ndjson", &line(&json!({"Id": id, "Status": "Completed"})));
        let file = line(&json!({"Name": name, "ContentType": "text/plain"}));
        self.add(&format!("executions/{EXECUTION}/files.ndjson"), &file);
        fs::create_dir_all(self.export().join(format!("executions/{EXECUTION}/files"))).unwrap();
    }

    /// Writes the list and the manifest.
    pub(crate) fn complete(&self) {
        let entry = |(path, contents): &(String, String)| {
            let lines = contents.lines().count();
            json!({"Path": path, "Lines": lines, "Bytes": contents.len(), "Sha256": sha256(contents)})
        };
        let list: String = self.files.iter().map(|file| line(&entry(file))).collect();
        fs::write(self.export().join("files.ndjson"), &list).unwrap();
        let manifest = json!({
            "Format": "assay-export", "Version": 1, "Source": "test", "Counts": {},
            "List": entry(&("files.ndjson".to_owned(), list)),
        });
        fs::write(self.export().join("manifest.json"), manifest.to_string()).unwrap();
    }
}

pub(crate) fn line(value: &Value) -> String {
    format!("{value}\n")
}

fn sha256(text: &str) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
    digest.as_ref().iter().fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"))
}

/// Imports an export, which fails and sends no secret.
pub(crate) async fn refused(export: &Path, case: &str) -> String {
    let server = Server::new().await;
    let failure = import(&server.url, export).await;
    let received = server.received();
    assert!(!received.iter().any(|one| one.contains(SECRET)), "{case}: {received:#?}");
    failure.expect_err(case)
}

#[tokio::test]
async fn a_listed_file_is_imported() {
    let mut forged = Forged::new();
    forged.execution(EXECUTION, "log.txt");
    forged.add(&format!("executions/{EXECUTION}/files/log.txt"), "a longer text");
    forged.complete();
    let server = Server::new().await;
    import(&server.url, &forged.export()).await.unwrap();
    let received = server.received();
    let sent = received.iter().find(|one| one.starts_with("PUT")).unwrap();
    assert!(
        sent.contains("/results/artifacts/log.txt") && sent.ends_with("a longer text"),
        "{sent}"
    );
}

#[tokio::test]
async fn a_file_that_an_interrupted_import_has_sent_is_not_sent_again() {
    let mut forged = Forged::new();
    let names = ["log.txt", "more.txt", "rest.txt"];
    forged.add("executions.ndjson", &line(&json!({"Id": EXECUTION, "Status": "Completed"})));
    let files = names.map(|name| line(&json!({"Name": name, "ContentType": "text/plain"})));
    forged.add(&format!("executions/{EXECUTION}/files.ndjson"), &files.concat());
    for name in names {
        forged.add(&format!("executions/{EXECUTION}/files/{name}"), "contents");
    }
    forged.complete();
    // The second one has another size, and the last one is not there.
    let stored = json!([{"Name": "log.txt", "Size": 8}, {"Name": "more.txt", "Size": 7}]);
    let server = Server::with(move |path| {
        path.contains("/results/artifacts?").then(|| answer(stored.clone()))
    });
    let server = server.await;
    import(&server.url, &forged.export()).await.unwrap();
    let received = server.received();
    let sent = received.iter().filter(|one| one.starts_with("PUT") && one.contains("/artifacts/"));
    let sent: Vec<_> = sent.filter_map(|one| one.split(' ').nth(1)?.rsplit('/').next()).collect();
    assert_eq!(sent, ["more.txt", "rest.txt"]);
}

#[tokio::test]
async fn known_failures_are_left_out_only_if_they_have_ended_or_exist() {
    let mut forged = Forged::new();
    forged.add(
        "knownfailures.ndjson",
        &line(&json!({"Fingerprint": "5f0c1a52b7d94e3b8f26d1c07a9e4b63"})),
    );
    forged.complete();
    for (status, code, is_left_out) in [
        (StatusCode::CONFLICT, "already_exists", true),
        (StatusCode::UNPROCESSABLE_ENTITY, "invalid", true),
        (StatusCode::FORBIDDEN, "forbidden", false),
    ] {
        let server = Server::with(move |path| {
            let problem = json!({"code": code, "detail": "no"});
            path.ends_with("/knownfailures").then(|| (status, answer(problem)).into_response())
        });
        let imported = import(&server.await.url, &forged.export()).await;
        assert_eq!(imported.is_ok(), is_left_out, "{code}: {imported:?}");
    }
}

#[tokio::test]
async fn a_file_that_the_list_does_not_name_is_not_read() {
    for name in [
        "../../../../secret",
        "../../../../secret?x",
        "log.txt?x=../../../../../secret",
        "a/../../../../../secret",
        "%2e%2e/secret",
        "",
        ".",
        "..",
        "unlisted.txt",
    ] {
        let mut forged = Forged::new();
        forged.execution(EXECUTION, name);
        let files = forged.export().join(format!("executions/{EXECUTION}/files"));
        fs::write(files.join("unlisted.txt"), SECRET).unwrap();
        forged.complete();
        refused(&forged.export(), name).await;
    }
    let secret = Forged::new();
    let mut forged = Forged::new();
    forged.execution(EXECUTION, secret.folder.path().join("secret").to_str().unwrap());
    forged.complete();
    refused(&forged.export(), "an absolute path").await;
}

#[tokio::test]
async fn an_execution_whose_id_is_a_path_is_refused() {
    for id in ["../..", "../../..", "a/b", ".", ""] {
        let mut forged = Forged::new();
        forged.execution(id, "secret");
        forged.complete();
        refused(&forged.export(), id).await;
    }
}

#[tokio::test]
async fn a_list_of_other_paths_is_refused() {
    for path in ["../secret", "secret", "executions/../secret", "/etc/hostname", "imported.txt"] {
        let mut forged = Forged::new();
        forged.files.push((path.to_owned(), SECRET.to_owned()));
        if !path.starts_with('/') {
            let file = forged.export().join(path);
            let _ = fs::create_dir_all(file.parent().unwrap());
            let _ = fs::write(file, SECRET);
        }
        forged.complete();
        refused(&forged.export(), path).await;
    }
}

#[tokio::test]
async fn a_manifest_cannot_name_another_list() {
    let mut forged = Forged::new();
    forged.execution(EXECUTION, "log.txt");
    forged.complete();
    let manifest = forged.export().join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let mut changed: Value = serde_json::from_str(&text).unwrap();
    let project = &forged.files[0];
    changed["List"] = json!({
        "Path": project.0, "Lines": 1, "Bytes": project.1.len(), "Sha256": sha256(&project.1)
    });
    fs::write(&manifest, changed.to_string()).unwrap();
    let failure = refused(&forged.export(), "another list").await;
    assert!(failure.contains("the list of an export is"), "{failure}");
}

#[cfg(unix)]
#[tokio::test]
async fn links_in_an_export_are_not_followed() {
    use std::os::unix::fs::symlink;

    for is_folder in [false, true] {
        let mut forged = Forged::new();
        forged.execution(EXECUTION, "secret");
        let path = format!("executions/{EXECUTION}/files/secret");
        forged.files.push((path.clone(), SECRET.to_owned()));
        let file = forged.export().join(&path);
        if is_folder {
            let files = file.parent().unwrap();
            fs::remove_dir(files).unwrap();
            symlink(forged.folder.path(), files).unwrap();
        } else {
            symlink(forged.folder.path().join("secret"), &file).unwrap();
        }
        forged.complete();
        let failure = refused(&forged.export(), "a link").await;
        assert!(failure.contains("symbolic link"), "{failure}");
    }
}
