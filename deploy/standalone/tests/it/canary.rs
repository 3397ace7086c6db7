//! Secrets leave no trace: neither in what Assay and its servers write to disk, nor in what it says.

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
    world::{id, project},
};

const CANARY: &str = "canary-7f3a9c51";

/// What somebody takes for a secret, perhaps because it is one elsewhere.
const WRONG: &str = "wrong-2d60e4b7";

/// Text that is no secret, which shows that the search would find one.
const MARKER: &str = "marker-5b1e8d02";

/// What is logged: all that we have to say, and most of what others have.
const EVERYTHING: &str = "trace,h2=info,hyper=info,hyper_util=info,mio=info,want=info";

/// Makes what only its owner is shown, and uses it, rightly and wrongly. Says what that is.
async fn handle_credentials(api: &Api) -> Vec<String> {
    let token = json!({"Name": "CI", "UsagePermission": "Read"});
    let token = api.post("/api/users/current/tokens", token).await.created();
    let token = token["Secret"].as_str().unwrap().to_owned();
    api.with_token(token.as_str()).get("/api/projects").await.ok();
    api.with_token(token.as_str()).post("/api/projects", json!({"Name": "No"})).await.expect(403);

    let hook = json!({"Url": "https://127.0.0.1:9/", "Events": ["*"]});
    let hook = api.post("/api/webhooks", hook).await.created();
    let wrong = format!("{WRONG}-password-of-nobody");
    let login = json!({"Email": "ada@example.org", "Password": wrong});
    api.post("/api/token/login", login).await.expect(401);
    api.with_token(format!("{WRONG}.token")).get("/api/projects").await.expect(401);
    let reset = json!({"Token": format!("{WRONG}-reset-token"), "NewPassword": wrong});
    api.put("/api/users/reset", reset).await;
    vec![token, hook["Secret"].as_str().unwrap().to_owned(), WRONG.to_owned()]
}

/// Writes secrets wherever they can be written, reads and changes them, and makes mistakes.
async fn handle_secrets(api: &Api) {
    let project = project(api).await;
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
        assert_eq!(read.pointer(secret), Some(&json!(CANARY)), "who may see it sees it");
        api.put(&path, read).await.ok();
        api.get(&list).await;
        let mut wrong = body;
        *wrong.pointer_mut(secret).unwrap() = json!([CANARY]);
        says_nothing(&api.put(&path, wrong.clone()).await, 422);
        says_nothing(&api.post(&list, wrong).await, 422);
        let broken = format!("{{\"Password\": \"{CANARY}\", \"Variables\": {CANARY}");
        let broken = api.request(Method::PUT, &path).body(broken);
        says_nothing(&Answer::of(broken.header("Content-Type", "application/json")).await, 400);
        if list.ends_with("testplans") {
            api.post(&format!("{path}/transfer/Stability"), Value::Null).await.created();
        }
    }
    for path in ["/api/notifications", "/api/management/audit"] {
        let answer = api.get(path).await;
        assert!(!holds(&answer.body, CANARY), "{path}");
    }
}

/// A refusal does not repeat what it refuses.
#[track_caller]
fn says_nothing(answer: &Answer, status: u16) {
    assert!(!holds(&answer.expect(status).body, CANARY), "{answer}");
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// The files below a directory that hold a text.
async fn files_with(dir: &Path, text: &str) -> String {
    // Some hundred megabytes, which take an unoptimized test too long.
    let found = Command::new("grep").args(["-rlaF", text]).arg(dir).output().await.unwrap();
    assert!(found.stderr.is_empty(), "{}", String::from_utf8_lossy(&found.stderr));
    String::from_utf8(found.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_found_in_no_log_event_or_file() {
    let data = data_dir();
    let log = data.with_extension("log");
    let mut assay = command(&data);
    assay.env("ASSAY_WEBHOOK_NETWORKS", "127.0.0.1");
    assay.env("ASSAY_LOG", EVERYTHING).stderr(File::create(&log).unwrap());
    let Program { mut child, mut lines, mut welcome, address } = Program::start(assay).await;
    let mut said = JoinSet::new();
    said.spawn(async move {
        while let Some(line) = lines.next_line().await.unwrap() {
            welcome.push(line);
        }
        welcome.join("\n")
    });
    let api = Api::new(format!("http://{address}"));
    let login = json!({"Email": "ada@example.org", "Password": PASSWORD});
    let token = api.post("/api/token/login", login).await.ok();
    let token = token["token"].as_str().unwrap();
    let api = api.with_token(token);
    handle_secrets(&api).await;
    let credentials = handle_credentials(&api).await;

    let pid = child.id().unwrap().to_string();
    assert!(Command::new("kill").arg(pid).status().await.unwrap().success());
    assert!(child.wait().await.unwrap().success());
    let said = said.join_next().await.unwrap().unwrap() + &fs::read_to_string(log).unwrap();
    assert!(said.contains("/api/projects"), "the log tells of requests: {said}");
    assert!(!files_with(&data, MARKER).await.is_empty(), "what is no secret is found");
    let credentials = credentials.iter().map(String::as_str);
    for secret in [CANARY, PASSWORD, token].into_iter().chain(credentials) {
        let line = said.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "a secret is in the log");
        assert_eq!(files_with(&data, secret).await, "");
    }
}
