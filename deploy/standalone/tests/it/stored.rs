//! Files in the store that no record has, for instance because the databases are those of an older backup.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use assay_testkit::{Answer, Api, eventually};
use reqwest::Method;
use serde_json::json;
use uuid::Uuid;

use crate::{
    process::{PASSWORD, Program, command, data_dir},
    world::{create_project, id},
};

/// Runs a command of a running Assay with this store. Returns whether it was successful, and its output.
async fn run(data: &Path, store: &Path, arguments: &[&str]) -> (bool, String) {
    let mut command = command(data);
    let done = command.env("ASSAY_ARTIFACTS", store).args(arguments).output().await.unwrap();
    let output = [done.stdout, done.stderr].concat();
    (done.status.success(), String::from_utf8(output).unwrap())
}

/// Uploads a file of a project and an artifact of an execution. Returns the path of the file.
async fn upload(api: &Api) -> String {
    let project = create_project(api).await;
    let request = api.request(Method::POST, &format!("{project}/files"));
    let request = request.header("X-File-Name", "shop.msi");
    let file = Answer::of(request.body("a file")).await.created();
    let open = json!({"Project": "Rocket", "TestSet": "Nightly"});
    let execution = api.post("/api/executions", open).await.created();
    let artifact = format!("/api/executions/{}/results/artifacts/run.log", id(&execution));
    Answer::of(api.request(Method::PUT, &artifact).body("an artifact")).await.ok();
    file["Url"].as_str().unwrap().to_owned()
}

/// Stores bytes that no record has. Returns their path.
fn lose(store: &Path, bytes: &str) -> PathBuf {
    let [customer, folder, id] = [(); 3].map(|()| Uuid::now_v7().to_string());
    let folder = store.join(customer).join(folder);
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(id);
    fs::write(&path, bytes).unwrap();
    path
}

/// Changes the time of all files in a store to that of two days ago.
fn age(store: &Path) {
    for entry in fs::read_dir(store).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            age(&path);
        } else {
            let file = File::options().write(true).open(&path).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_hours(48)).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_without_a_record_are_listed_and_removed() {
    let data = data_dir();
    let store = data.join("artifacts");
    let program = Program::start(command(&data)).await;
    let api = program.log_in("ada@example.org", PASSWORD).await;
    let file = upload(&api).await;
    let lost = lose(&store, "lost bytes");
    age(&store);
    let arriving = lose(&store, "arriving");

    let (is_right, output) = run(&data, &store, &["verify", "--files"]).await;
    let found = "Files in the store: 2 with a record, 1 (10 bytes) without one";
    assert!(!is_right && output.contains(found), "{output}");
    let place = lost.strip_prefix(&store).unwrap().to_str().unwrap();
    assert!(output.contains(&format!("file {place}, 10 bytes: no record has it")), "{output}");
    assert!(lost.exists(), "it is only listed");
    let (done, output) = run(&data, &store, &["rebuild", "--files"]).await;
    assert!(done && output.contains("Removed 1 files (10 bytes)"), "{output}");
    assert!(!lost.exists() && arriving.exists());
    eventually("no differences", || async {
        let (is_right, output) = run(&data, &store, &["verify", "--files"]).await;
        (is_right && output.contains("2 with a record, 0 (0 bytes)")).then_some(())
    })
    .await;
    let whole = Answer::of(api.request(Method::GET, &file)).await;
    assert_eq!(whole.expect(200).body, b"a file");

    let store = data.join("store-of-another-assay");
    let theirs = lose(&store, "theirs");
    age(&store);
    let (done, output) = run(&data, &store, &["rebuild", "--files"]).await;
    assert!(!done && output.contains("another Assay: nothing was removed"), "{output}");
    assert!(theirs.exists());
    assert!(program.terminate().await.success());
}
