//! Test tools and their reports: what Assay shows is what the tools print. `make test-tools` runs all of
//! them; a few are part of the other tests. The suites and their manifests are in `deploy/tools`.

mod page;
mod table;

use std::{
    fs,
    path::{Path, PathBuf},
};

use assay_testkit::{Answer, test_dir};
use reqwest::{
    Method,
    multipart::{Form, Part},
};
use serde_json::{Value, json};
use tokio::process::Command;
use uuid::Uuid;

use self::page::Page;
use crate::{
    customer::Customer,
    documents::at,
    world::{create_project, id},
};

/// Runs tools, and returns the folder with their reports, which are in `TOOL/RUN`.
async fn ran(options: &[&str]) -> PathBuf {
    let kept = test_dir().unwrap().join(Uuid::now_v7().to_string());
    let mut command = Command::new(at("deploy/tools/run"));
    let ran = command.arg("--keep").arg(&kept).args(options).kill_on_drop(true).output().await;
    let ran = ran.unwrap();
    let output = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
    assert!(ran.status.success(), "the tools do not print what their manifests say:\n{output}");
    kept
}

/// Returns the files of a folder that match a pattern within it.
fn files(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let pattern = folder.join(pattern).display().to_string();
    let mut files: Vec<PathBuf> = glob::glob(&pattern).unwrap().map(Result::unwrap).collect();
    files.retain(|file| file.is_file());
    files.sort();
    files
}

/// Reads the manifest of a tool.
fn manifest(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// A run of a tool whose reports were kept.
struct Run<'r> {
    name: String,
    folder: PathBuf,
    manifest: &'r Value,
}

impl Run<'_> {
    /// Uploads the reports that match a pattern.
    async fn upload(&self, customer: &Customer, project: &str, pattern: &str) -> Answer {
        let set = json!({ "Name": format!("{} {pattern}", self.name) });
        let set = customer.api.post(&format!("{project}/testsets"), set).await.created();
        let mut form = Form::new();
        for file in files(&self.folder, pattern) {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            form = form.part("file", Part::bytes(fs::read(&file).unwrap()).file_name(name));
        }
        let path = format!("{project}/testsets/{}/results", id(&set));
        Answer::of(customer.api.request(Method::POST, &path).multipart(form)).await
    }

    /// Returns how executions differ from the manifest: each has its counts, and is red if the tool failed.
    async fn differences(&self, customer: &Customer, project: &str) -> Vec<String> {
        let mut differences = Vec::new();
        for (pattern, expected) in self.manifest["shown"].as_object().unwrap() {
            let answer = self.upload(customer, project, pattern).await;
            let difference = if answer.status.is_success() {
                self.difference(customer, project, pattern, &answer.created()).await
            } else if answer.status.is_client_error() && expected == "refused" {
                None
            } else {
                let body = String::from_utf8_lossy(&answer.body);
                Some(format!("status {}: {body}", answer.status))
            };
            let place = |difference| format!("{} {pattern}: {difference}", self.name);
            differences.extend(difference.map(place));
        }
        differences
    }

    async fn difference(
        &self,
        customer: &Customer,
        project: &str,
        pattern: &str,
        execution: &Value,
    ) -> Option<String> {
        let count = |name: &str| execution["Statistic"][name].as_u64().unwrap();
        let failed = ["TestCasesFailed", "TestCasesWithError", "TestCasesAborted"].map(count);
        let has_failed = failed.iter().sum::<u64>() > 0;
        let silent = self.manifest["silent"].as_array();
        let is_silent = silent.is_some_and(|silent| silent.iter().any(|one| one == pattern));
        if !has_failed && self.manifest["exitCode"] != 0 && !is_silent {
            return Some(format!("green: {execution}"));
        }
        let path = format!("/api/projects/0/executions/{}", id(execution));
        let verdict = customer.api.get(&format!("{path}/verdict")).await.ok();
        let fails_gate = verdict["State"] == "Failed";
        if has_failed && (!fails_gate || execution["Result"] == "Passed") {
            return Some(format!("failed tests, but {verdict} and {}", execution["Result"]));
        }
        let [passed, failed, skipped, flaky] = counts(customer, project, execution).await;
        let shown = json!({
            "passed": passed, "failed": failed, "skipped": skipped, "flaky": flaky,
        });
        let expected = &self.manifest["shown"][pattern];
        if &shown != expected {
            return Some(format!("shows {shown}, not {expected}"));
        }
        Page::of(customer, execution).await.difference(execution, has_failed, fails_gate)
    }
}

/// Returns the number of instances of an execution that passed, failed, were skipped and are flaky: a
/// test can have several.
async fn counts(customer: &Customer, project: &str, execution: &Value) -> [u64; 4] {
    let path = format!("{project}/executions/{}/ctrf", id(execution));
    let ctrf = customer.api.get(&path).await.ok();
    let summary = &ctrf["results"]["summary"];
    ["passed", "failed", "skipped", "flaky"].map(|name| summary[name].as_u64().unwrap())
}

/// Checks all tools that were run.
async fn check(kept: &Path) {
    let customer = Customer::new().await;
    let mut tools: Vec<PathBuf> =
        fs::read_dir(kept).unwrap().map(|entry| entry.unwrap().path()).collect();
    tools.sort();
    assert!(!tools.is_empty());
    let mut differences = Vec::new();
    for folder in tools {
        let tool = folder.file_name().unwrap().to_string_lossy().into_owned();
        let manifest = manifest(&at("deploy/tools").join(&tool).join("tool.json"));
        let project = create_project(&customer.api).await;
        for run in manifest["runs"].as_array().unwrap() {
            let name = run["name"].as_str().unwrap();
            let folder = folder.join(name);
            if folder.exists() {
                let name = format!("{tool} {name}");
                let run = Run { name, folder, manifest: run };
                differences.extend(run.differences(&customer, &project).await);
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    let _ = fs::remove_dir_all(kept);
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_show_what_a_few_tools_print() {
    check(&ran(&["--ci"]).await).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "make test-tools"]
async fn reports_show_what_all_tools_print() {
    check(&ran(&[]).await).await;
}
