//! ReportPortal: pages of launches and items, as `GET /api/v1/{project}/launch` and `…/item` return
//! them.

mod logs;

use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use self::logs::logs;
use super::{
    Source,
    json::{elements, text},
    model::{NOT_ENDED, OF_DEBUGGING, Outcome, Run, Verdict},
    store::Store,
    text::{milliseconds, time},
};

/// The field of a page with its records.
const CONTENT: [&str; 1] = ["content"];

/// The attributes of a launch that have fields of their own.
const BUILD: [&str; 2] = ["build", "version"];

/// Identifier and text of the result that stands for a launch, as launches that are reported to Assay have them.
const RUN: &str = "Test run";
const NO_FAILED_TEST: &str = "The launch failed, but none of its tests did.";

/// Reads the pages of ReportPortal.
#[derive(Default)]
pub(super) struct ReportPortal {
    /// The results and ends of launches that have failed.
    failed: BTreeMap<i64, (Verdict, Option<DateTime<Utc>>)>,
    /// The launches with a result that has failed.
    explained: HashSet<i64>,
}

/// Whether a file has launches or items of ReportPortal.
pub(super) fn is_reportportal(head: &str) -> bool {
    let has = |field: &str| head.contains(&format!("\"{field}\""));
    let is_item = has("launchId") && (has("hasStats") || has("hasChildren") || has("type"));
    let is_launch = has("startTime") && has("number") && (has("mode") || has("owner"));
    head.starts_with(['[', '{']) && (is_item || is_launch)
}

impl Source for ReportPortal {
    fn name(&self) -> &'static str {
        "reportportal"
    }

    fn read(&mut self, files: &[PathBuf], store: &mut Store) -> Result<()> {
        for file in files {
            let (mut number, folder) = (0, file.parent().unwrap_or(Path::new("")));
            elements(file, &CONTENT, &mut |record| {
                number += 1;
                let read = if record.contains_key("launchId") {
                    self.item(&record, folder, store)
                } else {
                    self.launch(&record, store)
                };
                read.with_context(|| format!("record {number}"))
            })?;
        }
        self.explain(store)
    }
}

impl ReportPortal {
    fn launch(&mut self, launch: &Map<String, Value>, store: &mut Store) -> Result<()> {
        let run = run(launch)?;
        let (id, status) = (number(launch, "id")?, text(launch, "status"));
        if has_failed(&status) && run.left_out.is_none() {
            self.failed.insert(id, (verdict(&status), run.end));
        }
        store.run(run)
    }

    /// Adds an item that counts and contains none that does. Its retries are attempts before it.
    fn item(&mut self, item: &Map<String, Value>, folder: &Path, store: &mut Store) -> Result<()> {
        let launch = number(item, "launchId")?;
        if !is_result(item) {
            return Ok(());
        }
        let mut attempts: Vec<&Map<String, Value>> = item
            .get("retries")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_object)
            .collect();
        attempts.sort_by_key(|attempt| moment(attempt, "startTime"));
        attempts.push(item);
        // The last attempt decides.
        if is_failure(&verdict(&text(item, "status"))) {
            self.explained.insert(launch);
        }
        let identifier = identifier(item);
        for (number, attempt) in attempts.into_iter().enumerate() {
            let outcome = Outcome {
                identifier: identifier.clone(),
                name: text(item, "name"),
                is_retry: number > 0,
                ..outcome(attempt, folder)?
            };
            store.result(&launch.to_string(), outcome)?;
        }
        Ok(())
    }

    /// Adds a result for each launch that has failed, while none of its results has.
    fn explain(&mut self, store: &mut Store) -> Result<()> {
        for (launch, (verdict, end)) in std::mem::take(&mut self.failed) {
            if self.explained.contains(&launch) {
                continue;
            }
            let outcome = Outcome {
                identifier: RUN.to_owned(),
                name: RUN.to_owned(),
                verdict,
                start: end,
                end,
                comment: NO_FAILED_TEST.to_owned(),
                ..Outcome::default()
            };
            store.result(&launch.to_string(), outcome)?;
        }
        Ok(())
    }
}

/// Returns a launch as a run.
fn run(launch: &Map<String, Value>) -> Result<Run> {
    let attributes = launch.get("attributes").and_then(Value::as_array).into_iter().flatten();
    let attributes = attributes.filter_map(Value::as_object);
    let attributes: Vec<_> = attributes
        .filter(|one| one.get("system") != Some(&Value::Bool(true)))
        .map(|one| (text(one, "key"), text(one, "value").replace(',', " ")))
        .collect();
    let build = attributes.iter().find(|(key, _)| BUILD.contains(&key.as_str()));
    let tag = |(key, value): &(String, String)| match key.as_str() {
        "" => value.clone(),
        key => format!("{key}:{value}"),
    };
    Ok(Run {
        key: number(launch, "id")?.to_string(),
        set: text(launch, "name"),
        start: moment(launch, "startTime"),
        end: moment(launch, "endTime"),
        tags: attributes
            .iter()
            .map(tag)
            .collect::<Vec<_>>()
            .join(", ")
            .chars()
            .take(1000)
            .collect(),
        build: build.map(|(_, value)| value.clone()),
        url: None,
        left_out: left_out(launch),
    })
}

/// Returns why a launch is left out. None if it is imported.
fn left_out(launch: &Map<String, Value>) -> Option<&'static str> {
    let is = |field: &str, value: &str| text(launch, field).eq_ignore_ascii_case(value);
    if is("status", "IN_PROGRESS") {
        return Some(NOT_ENDED);
    }
    is("mode", "DEBUG").then_some(OF_DEBUGGING)
}

/// Returns an attempt at a test, without what is the same for all of them.
fn outcome(attempt: &Map<String, Value>, folder: &Path) -> Result<Outcome> {
    let issue = attempt.get("issue").and_then(Value::as_object);
    let tickets = issue.and_then(|issue| issue.get("externalSystemIssues")?.as_array());
    let tickets: Vec<_> = tickets
        .into_iter()
        .flatten()
        .filter_map(|ticket| ticket.get("ticketId")?.as_str())
        .collect();
    let comment = issue.map(|issue| text(issue, "comment")).unwrap_or_default();
    let (logs, files) = logs(attempt, folder)?;
    Ok(Outcome {
        verdict: verdict(&text(attempt, "status")),
        start: moment(attempt, "startTime"),
        end: moment(attempt, "endTime"),
        comment: [text(attempt, "description"), comment, logs].join("\n").trim().to_owned(),
        ticket: tickets.join(", "),
        files,
        ..Outcome::default()
    })
}

/// Returns whether an item becomes a result: it is a test, which counts and contains none that does, or a fixture
/// that failed.
pub(crate) fn is_result(item: &Map<String, Value>) -> bool {
    let is =
        |field: &str, default: bool| item.get(field).and_then(Value::as_bool).unwrap_or(default);
    let counts = is("hasStats", true) && !is("hasChildren", false);
    counts && (!is_fixture(item) || has_failed(&text(item, "status")))
}

fn is_fixture(item: &Map<String, Value>) -> bool {
    let kind = text(item, "type").to_uppercase();
    kind.starts_with("BEFORE_") || kind.starts_with("AFTER_")
}

/// Returns whether a status is that of a failure.
fn has_failed(status: &str) -> bool {
    !status.is_empty() && is_failure(&verdict(status))
}

fn is_failure(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Failed | Verdict::Error | Verdict::Aborted)
}

fn number(record: &Map<String, Value>, field: &str) -> Result<i64> {
    let number = record.get(field).and_then(Value::as_i64);
    number.with_context(|| format!("{field}: must be a number"))
}

/// Returns the identifier of a test case, as launches that are reported to Assay have it.
fn identifier(item: &Map<String, Value>) -> String {
    let path = path(item);
    if is_fixture(item) {
        return assay_formats::reportportal::hook_identifier(&path);
    }
    let (mut case, code) = (text(item, "testCaseId"), text(item, "codeRef"));
    // ReportPortal derives an id from the code, also if that is a line of a file, which changes.
    let is_line = code.rsplit_once(':').is_some_and(|(_, line)| line.parse::<u32>().is_ok());
    let rest = case.strip_prefix(code.as_str());
    if is_line && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('[')) {
        case.clear();
    }
    let parameters = item.get("parameters");
    let item = json!({"testCaseId": case, "codeRef": code, "parameters": parameters});
    assay_formats::reportportal::identifier(&item, &path)
}

/// Returns the names of the items around an item, outermost first, and its own.
fn path(item: &Map<String, Value>) -> Vec<String> {
    let names = item.get("pathNames").and_then(|names| names.get("itemPaths")?.as_array());
    let names = names.into_iter().flatten().filter_map(|name| name.get("name")?.as_str());
    names.map(str::to_owned).chain([text(item, "name")]).collect()
}

/// Returns a time, in text or in milliseconds since 1970.
fn moment(record: &Map<String, Value>, field: &str) -> Option<DateTime<Utc>> {
    match record.get(field)? {
        Value::Number(number) => milliseconds(number.as_i64()?),
        Value::String(text) => time(text).or_else(|| milliseconds(text.parse().ok()?)),
        _ => None,
    }
}

/// Returns the result that a status of ReportPortal stands for.
fn verdict(status: &str) -> Verdict {
    match status.to_uppercase().as_str() {
        "PASSED" => Verdict::Passed,
        "FAILED" => Verdict::Failed,
        "ERROR" => Verdict::Error,
        "SKIPPED" | "CANCELLED" | "INFO" | "WARN" | "RESETED" => Verdict::Canceled,
        "" | "IN_PROGRESS" | "STOPPED" | "INTERRUPTED" => Verdict::Aborted,
        _ => Verdict::Unknown(status.to_owned()),
    }
}

#[cfg(test)]
mod tests;
