//! ReportPortal: pages of launches and items, as `GET /api/v1/{project}/launch` and `…/item` return
//! them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::{
    Source,
    json::{elements, text},
    model::{Attachment, Outcome, Run, Verdict},
    store::Store,
    text::{milliseconds, time},
};
use crate::folder::Name;

/// The field of a page with its records.
const CONTENT: [&str; 1] = ["content"];

/// The attributes of a launch that have fields of their own.
const BUILD: [&str; 2] = ["build", "version"];

/// Reads the pages of ReportPortal.
#[derive(Default)]
pub(super) struct ReportPortal;

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
                    item(&record, folder, store)
                } else {
                    launch(&record, store)
                };
                read.with_context(|| format!("record {number}"))
            })?;
        }
        Ok(())
    }
}

fn launch(launch: &Map<String, Value>, store: &mut Store) -> Result<()> {
    let id = launch.get("id").and_then(Value::as_i64).context("id: must be a number")?;
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
    store.run(Run {
        key: id.to_string(),
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
    })
}

/// Adds an item that counts and contains none that does. Its retries are attempts before it.
fn item(item: &Map<String, Value>, folder: &Path, store: &mut Store) -> Result<()> {
    let launch =
        item.get("launchId").and_then(Value::as_i64).context("launchId: must be a number")?;
    if !is_test(item) {
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
    let identifier = identifier(item);
    for (number, attempt) in attempts.into_iter().enumerate() {
        let issue = attempt.get("issue").and_then(Value::as_object);
        let tickets = issue.and_then(|issue| issue.get("externalSystemIssues")?.as_array());
        let tickets: Vec<_> = tickets
            .into_iter()
            .flatten()
            .filter_map(|ticket| ticket.get("ticketId")?.as_str())
            .collect();
        let comment = issue.map(|issue| text(issue, "comment")).unwrap_or_default();
        let (logs, files) = logs(attempt, folder)?;
        let outcome = Outcome {
            identifier: identifier.clone(),
            name: text(item, "name"),
            verdict: verdict(&text(attempt, "status")),
            start: moment(attempt, "startTime"),
            end: moment(attempt, "endTime"),
            is_retry: number > 0,
            comment: [text(attempt, "description"), comment, logs].join("\n").trim().to_owned(),
            ticket: tickets.join(", "),
            files,
            ..Outcome::default()
        };
        store.result(&launch.to_string(), outcome)?;
    }
    Ok(())
}

/// Returns whether an item is a test: it counts and contains none that does.
pub(crate) fn is_test(item: &Map<String, Value>) -> bool {
    let is =
        |field: &str, default: bool| item.get(field).and_then(Value::as_bool).unwrap_or(default);
    let kind = text(item, "type").to_uppercase();
    let is_fixture = kind.starts_with("BEFORE_") || kind.starts_with("AFTER_");
    is("hasStats", true) && !is("hasChildren", false) && !is_fixture
}

/// Returns the logs of an attempt, errors first, and their files, which are beside that of the items.
/// Only items that were read from a URL have logs.
fn logs(attempt: &Map<String, Value>, folder: &Path) -> Result<(String, Vec<Attachment>)> {
    let logs = attempt.get("logs").and_then(Value::as_array).into_iter().flatten();
    let logs: Vec<_> = logs.filter_map(Value::as_object).collect();
    let is_error = |log: &&&Map<String, Value>| {
        matches!(text(log, "level").to_uppercase().as_str(), "ERROR" | "FATAL")
    };
    let errors = logs.iter().filter(is_error);
    let others = logs.iter().filter(|log| !is_error(log));
    let messages: Vec<_> = errors.chain(others).map(|log| text(log, "message")).collect();
    let files = logs.iter().filter_map(|log| log.get("file")?.as_object());
    let files = files.map(|file| {
        let (id, content_type) = (text(file, "id"), text(file, "contentType"));
        let name = Name::parse(&file_name(&id, &content_type))?;
        let source = Name::parse(&format!("file-{id}"))?;
        Ok(Attachment { folder: folder.to_owned(), source, name, content_type })
    });
    Ok((messages.join("\n"), files.collect::<Result<_>>()?))
}

/// Returns the name of a file: its id, with the extension of its media type.
fn file_name(id: &str, content_type: &str) -> String {
    let extension = match content_type.split(';').next().unwrap_or_default().trim() {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "text/plain" => "txt",
        "text/html" => "html",
        "application/json" => "json",
        "application/xml" | "text/xml" => "xml",
        "application/zip" => "zip",
        "video/mp4" => "mp4",
        "video/webm" => "webm",
        _ => "bin",
    };
    format!("reportportal-{id}.{extension}")
}

/// Returns the identifier of a test case, as launches that are reported to Assay have it.
fn identifier(item: &Map<String, Value>) -> String {
    let (case, code) = (text(item, "testCaseId"), text(item, "codeRef"));
    let ends_in_line =
        |text: &str| text.rsplit_once(':').is_some_and(|(_, line)| line.parse::<u32>().is_ok());
    let is_place = case == code && ends_in_line(&code);
    if !case.trim().is_empty() && !is_place {
        return case;
    }
    if !code.trim().is_empty() && !ends_in_line(&code) {
        return code;
    }
    let names = item.get("pathNames").and_then(|names| names.get("itemPaths")?.as_array());
    let names = names.into_iter().flatten().filter_map(|name| name.get("name")?.as_str());
    let names = names.map(str::to_owned).chain([text(item, "name")]);
    names.collect::<Vec<_>>().join("/")
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
        "PASSED" | "INFO" | "WARN" => Verdict::Passed,
        "FAILED" => Verdict::Failed,
        "ERROR" => Verdict::Error,
        "SKIPPED" | "CANCELLED" => Verdict::Canceled,
        "" | "IN_PROGRESS" | "STOPPED" | "INTERRUPTED" => Verdict::Aborted,
        _ => Verdict::Unknown(status.to_owned()),
    }
}

#[cfg(test)]
mod tests;
