//! Secrets appear neither in files of Assay and its servers nor in output and answers.

mod links;

use std::{
    fs::{self, File},
    path::Path,
};

use assay_testkit::{Answer, Api};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{process::Command, task::JoinSet};

use crate::{
    process::{PASSWORD, Program, command, data_dir},
    world::{create_project, id},
};

const CANARY: &str = "canary-7f3a9c51";

/// Part of wrong credentials, which may be valid elsewhere.
const WRONG: &str = "wrong-2d60e4b7";

/// A text that is not secret, to prove that the search finds texts.
const MARKER: &str = "marker-5b1e8d02";

/// Log filter: all messages of Assay and its libraries.
const EVERYTHING: &str = "trace";

/// Creates credentials, uses them and wrong ones, and returns them all.
async fn use_credentials(api: &Api) -> Vec<String> {
    let token = json!({"Name": "CI", "UsagePermission": "Read"});
    let token = api.post("/api/users/current/tokens", token).await.created();
    let token = token["Secret"].as_str().unwrap().to_owned();
    api.with_token(token.as_str()).get("/api/projects").await.ok();
    api.with_token(token.as_str()).post("/api/projects", json!({"Name": "No"})).await.expect(403);

    let hook = json!({"Url": "https://127.0.0.1:9/", "Events": ["*"]});
    let hook = api.post("/api/webhooks", hook).await.created();
    let wrong = format!("{WRONG}-password");
    let login = json!({"Email": "ada@example.org", "Password": wrong});
    api.post("/api/token/login", login).await.expect(401);
    api.with_token(format!("{WRONG}.token")).get("/api/projects").await.expect(401);
    let reset = json!({"Token": format!("{WRONG}-reset-token"), "NewPassword": wrong});
    api.put("/api/users/reset", reset).await;
    vec![token, hook["Secret"].as_str().unwrap().to_owned(), WRONG.to_owned()]
}

/// Writes, reads and changes secrets in all records, with valid and invalid requests.
async fn use_secrets(api: &Api) {
    let project = create_project(api).await;
    let variables = json!([{
        "PoolName": "", "IsSecured": true, "ValidationRule": "", "Name": "token",
        "DisplayName": MARKER, "Content": CANARY,
    }]);
    let subject = json!({
        "Identifier": "1.0", "Name": "Shop", "SubjectType": "Webpage", "Uri": "https://shop.test",
        "Variables": variables,
    });
    let lab = json!({"Name": "Lab", "Password": CANARY});
    let case = json!({"Name": "Log in", "Identifier": MARKER});
    let plan = json!({"Variables": variables});
    let mut cases = String::new();
    for (list, body, secret) in [
        (format!("{project}/subjects"), subject, "/Variables/0/Content"),
        (format!("{project}/environments"), lab, "/Password"),
        (format!("{project}/testcases"), case, ""),
        (String::from("testplans"), plan, "/Variables/0/Content"),
    ] {
        let list = if list == "testplans" { format!("{cases}/testplans") } else { list };
        let path = format!("{list}/{}", id(&api.post(&list, body.clone()).await.created()));
        if secret.is_empty() {
            cases.clone_from(&path);
            continue;
        }
        let read = api.get(&path).await.ok();
        assert_eq!(
            read.pointer(secret),
            Some(&json!(CANARY)),
            "the secret is shown with the permission"
        );
        api.put(&path, read).await.ok();
        api.get(&list).await;
        let mut wrong = body;
        *wrong.pointer_mut(secret).unwrap() = json!([CANARY]);
        assert_secret_is_absent(&api.put(&path, wrong.clone()).await, 422);
        assert_secret_is_absent(&api.post(&list, wrong).await, 422);
        let broken = format!("{{\"Password\": \"{CANARY}\", \"Variables\": {CANARY}");
        let broken = api.request(Method::PUT, &path).body(broken);
        assert_secret_is_absent(
            &Answer::of(broken.header("Content-Type", "application/json")).await,
            400,
        );
        if list.ends_with("testplans") {
            api.post(&format!("{path}/transfer/Stability"), Value::Null).await.created();
        }
    }
    for path in ["/api/notifications", "/api/management/audit"] {
        let answer = api.get(path).await;
        assert!(!contains(&answer.body, CANARY), "{path}");
    }
}

/// Asserts that an error does not repeat the secret.
#[track_caller]
fn assert_secret_is_absent(answer: &Answer, status: u16) {
    assert!(!contains(&answer.expect(status).body, CANARY), "{answer}");
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Returns the paths of the files below a directory that contain a text.
async fn files_with(dir: &Path, text: &str) -> String {
    // `grep`, because an unoptimized test is too slow for hundreds of megabytes.
    let found = Command::new("grep").args(["-rlaF", text]).arg(dir).output().await.unwrap();
    assert!(found.stderr.is_empty(), "{}", String::from_utf8_lossy(&found.stderr));
    String::from_utf8(found.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_events_and_files_contain_no_secrets() {
    let data = data_dir();
    let log = data.with_extension("log");
    let mut assay = command(&data);
    assay.env("ASSAY_WEBHOOK_NETWORKS", "127.0.0.1");
    assay.env("ASSAY_LOG", EVERYTHING).stderr(File::create(&log).unwrap());
    let Program { mut child, mut lines, mut startup_lines, address } = Program::start(assay).await;
    let mut output = JoinSet::new();
    output.spawn(async move {
        while let Some(line) = lines.next_line().await.unwrap() {
            startup_lines.push(line);
        }
        startup_lines.join("\n")
    });
    let url = format!("http://{address}");
    let api = Api::new(&url);
    let login = json!({"Email": "ada@example.org", "Password": PASSWORD});
    let token = api.post("/api/token/login", login).await.ok();
    let token = token["token"].as_str().unwrap();
    let api = api.with_token(token);
    use_secrets(&api).await;
    let mut credentials = use_credentials(&api).await;
    credentials.extend(links::share(&api, &url).await);
    let mailed = links::reset_password(&api, &data).await;
    credentials.extend(links::visit(&api, &url).await);

    let pid = child.id().unwrap().to_string();
    assert!(Command::new("kill").arg(pid).status().await.unwrap().success());
    assert!(child.wait().await.unwrap().success());
    let output = output.join_next().await.unwrap().unwrap() + &fs::read_to_string(log).unwrap();
    for part in ["/api/projects", "FramedWrite", "insert into"] {
        assert!(output.contains(part), "{part} is not logged");
    }
    assert!(!files_with(&data, MARKER).await.is_empty(), "the marker is found in the files");
    let credentials = credentials.iter().map(String::as_str);
    for secret in [CANARY, PASSWORD, token].into_iter().chain(credentials) {
        let line = output.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "a secret is in the log");
        assert_eq!(files_with(&data, secret).await, "");
    }
    // Secrets that files have to contain.
    let keys = fs::read_to_string(data.join("encryption-keys")).unwrap();
    let (_, key) = keys.trim().split_once(':').unwrap();
    for secret in [key, &mailed] {
        let line = output.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "a secret is in the log");
    }
}
