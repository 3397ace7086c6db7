//! Reports of test tools with broken parts are uploaded: no answer is the fault of Assay, and pages and
//! summaries of what was accepted are shown.

use std::{fs, path::Path};

use assay_testkit::{Answer, Api};
use futures::{StreamExt as _, stream};
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::{
    customer::Customer,
    numbers::Numbers,
    world::{create_project, id},
};

/// Number of mutants of each sample in an ordinary run, and in a long one.
const FEW: usize = 3;
const MANY: usize = 40;

/// Values that replace others.
const HOSTILE: [&str; 12] = [
    "",
    "\0",
    "\\u0000",
    "\\ud800",
    "1e999",
    "-9223372036854775809",
    "null",
    "[]",
    "{}",
    "\u{202e}\u{feff}",
    "9999-99-99T99:99:99Z",
    "&#0;",
];

/// Returns the files with reports in a folder.
fn samples(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            samples(&path, found);
        } else if let Ok(text) = fs::read_to_string(&path) {
            found.push((path.display().to_string(), text));
        }
    }
}

/// Returns the pieces of a report: tags and texts, members, or lines.
fn pieces(report: &str) -> Vec<&str> {
    report.split_inclusive(['>', ',', '{', '[', '\n', '"']).collect()
}

/// Returns a report with up to three broken parts.
fn mutant(report: &str, numbers: &mut Numbers) -> String {
    let mut parts: Vec<String> = pieces(report).into_iter().map(str::to_owned).collect();
    for _ in 0..=numbers.below(3) {
        let at = numbers.below(parts.len());
        let span = at..parts.len().min(at + 1 + numbers.below(12));
        match numbers.below(5) {
            0 => drop(parts.drain(span)),
            1 => {
                let again: Vec<String> = parts[span].to_vec();
                parts.splice(at..at, again);
            }
            2 if numbers.below(4) == 0 => parts.truncate(at),
            _ => {
                let part = &mut parts[at];
                let end = part.pop().unwrap_or_default();
                *part = format!("{}{end}", HOSTILE[numbers.below(HOSTILE.len())]);
            }
        }
        if parts.is_empty() {
            break;
        }
    }
    parts.concat()
}

/// Uploads a report, and reads what was accepted. Returns the requests that failed.
async fn failures(
    api: &Api,
    (project, set): (&str, &str),
    name: &str,
    report: String,
) -> Vec<String> {
    let request = api.request(Method::POST, &format!("{set}/results"));
    let media_type =
        if report.trim_start().starts_with('<') { "application/xml" } else { "text/plain" };
    let answer = Answer::of(request.header("Content-Type", media_type).body(report.clone())).await;
    let mut failed = Vec::new();
    if answer.status.is_server_error() {
        failed.push(described(name, &answer, &report));
    }
    if answer.status != StatusCode::CREATED {
        return failed;
    }
    let execution = format!("{project}/executions/{}", id(&answer.json()));
    for view in ["verdict", "summary", "failures", "reports", "junit", "ctrf", "results"] {
        let shown = api.get(&format!("{execution}/{view}")).await;
        if shown.status.is_server_error() {
            failed.push(described(&format!("{name}, {view}"), &shown, &report));
        }
    }
    failed
}

fn described(name: &str, answer: &Answer, report: &str) -> String {
    format!("{name}: {} {}\n{report}", answer.status, String::from_utf8_lossy(&answer.body))
}

async fn no_mutant_fails(each: usize) {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    let set = api.post(&format!("{project}/testsets"), json!({"Name": "Mutants"})).await.created();
    let set = &format!("{project}/testsets/{}", id(&set));
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../services/kit/formats/tests/files");
    let (mut found, mut numbers) = (Vec::new(), Numbers::of(41));
    samples(&folder, &mut found);
    assert!(found.len() > 100, "{} samples", found.len());
    let mutants = found.iter().flat_map(|(name, report)| {
        (0..each).map(|_| (name, mutant(report, &mut numbers))).collect::<Vec<_>>()
    });
    let uploads = mutants.map(|(name, report)| failures(api, (&project, set), name, report));
    let failed: Vec<Vec<String>> = stream::iter(uploads).buffer_unordered(8).collect().await;
    println!("{} mutants of {} samples", failed.len(), found.len());
    let failed = failed.concat();
    assert!(failed.is_empty(), "{} failures, such as\n{}", failed.len(), failed[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_broken_report_makes_assay_fail() {
    no_mutant_fails(FEW).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes many minutes"]
async fn none_of_many_broken_reports_makes_assay_fail() {
    no_mutant_fails(MANY).await;
}
