//! Reads a project of ReportPortal: launches, their items with logs, and files of logs.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use assay_client::segment;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Map, Value, json};

use super::{remote::Remote, write};
use crate::{
    progress::{Progress, note},
    source::is_result_of_reportportal,
};

/// Number of records in a page.
const PAGE: u64 = 300;

/// Maximum size of a file of a log, in bytes.
const LARGEST_FILE: u64 = 32 << 20;

/// Number of items whose logs are read at the same time.
const AT_ONCE: usize = 8;

/// Maximum number of logs of an attempt that are read, the first ones, and of its files.
const LOGS: u64 = 3_000;
const FILES: usize = 50;

/// Maximum number of pages of a list, and number of bytes of the records of one that are kept.
const PAGES: u64 = 20_000;
const LARGEST_LIST: usize = 1 << 30;

type Record = Map<String, Value>;

/// A project of ReportPortal that is read into a folder.
struct Project<'p> {
    remote: &'p Remote,
    /// The path of the project.
    at: String,
    /// The name of the project, as part of a path.
    name: String,
    folder: &'p Path,
    all_logs: bool,
}

/// Reads the launches that have ended. Those that were read before are not read again.
pub(super) async fn read(
    remote: &Remote,
    project: &str,
    folder: &Path,
    all_logs: bool,
) -> Result<Vec<PathBuf>> {
    let name = segment(project);
    let project = Project { remote, at: format!("/api/v1/{name}"), name, folder, all_logs };
    let (list, ids) = project.launches().await?;
    let mut files = vec![list];
    let mut progress = Progress::new("launches read", Some(ids.len() as u64));
    for id in ids {
        let file = folder.join(format!("items-{id}.ndjson"));
        if !file.exists() {
            let items = project.items(id).await.with_context(|| format!("launch {id}"))?;
            write(&file, &items)?;
        }
        files.push(file);
        progress.add(1);
    }
    progress.end();
    Ok(files)
}

impl Project<'_> {
    /// Reads the launches. Returns their file, and the ids of those that have ended: the others are left out.
    async fn launches(&self) -> Result<(PathBuf, Vec<i64>)> {
        let (mut lines, mut ids) = (Vec::new(), Vec::new());
        let mut seen = HashSet::new();
        for page in 1.. {
            let path = format!("{}/launch?filter.eq.mode=DEFAULT", self.at);
            let (launches, is_last) = self.page(&path, page).await?;
            for launch in launches {
                let id = launch.get("id").and_then(Value::as_i64);
                let id = id.context("a launch has no id: check that --from is ReportPortal")?;
                // Launches that start meanwhile move others to the next page.
                if !seen.insert(id) {
                    continue;
                }
                serde_json::to_writer(&mut lines, &launch)?;
                end_line(&mut lines)?;
                if launch.get("status") != Some(&json!("IN_PROGRESS")) {
                    ids.push(id);
                }
            }
            if is_last {
                break;
            }
        }
        let file = self.folder.join("launches.ndjson");
        write(&file, &lines)?;
        Ok((file, ids))
    }

    /// Returns the items of a launch that become results, each on a line, with their logs.
    async fn items(&self, launch: i64) -> Result<Vec<u8>> {
        let mut lines = Vec::new();
        let mut seen = HashSet::new();
        for page in 1.. {
            let path = format!("{}/item?filter.eq.launchId={launch}", self.at);
            let (mut items, is_last) = self.page(&path, page).await?;
            items.retain(|item| {
                is_result_of_reportportal(item) && seen.insert(item.get("id").cloned())
            });
            let read = stream::iter(items).map(|item| self.with_logs(item)).buffered(AT_ONCE);
            for item in read.try_collect::<Vec<_>>().await? {
                serde_json::to_writer(&mut lines, &item)?;
                end_line(&mut lines)?;
            }
            if is_last {
                break;
            }
        }
        Ok(lines)
    }

    /// Adds the logs of each attempt that has not passed.
    async fn with_logs(&self, mut item: Record) -> Result<Record> {
        let mut retries = match item.remove("retries") {
            Some(Value::Array(retries)) => retries,
            _ => Vec::new(),
        };
        let has_retries = !retries.is_empty();
        let earlier = retries.iter_mut().filter_map(Value::as_object_mut);
        for attempt in earlier.chain([&mut item]) {
            let passed = attempt.get("status") == Some(&json!("PASSED"));
            if !passed || self.all_logs {
                let logs = self.logs(attempt, has_retries).await?;
                attempt.insert("logs".to_owned(), logs.into());
            }
        }
        if has_retries {
            item.insert("retries".to_owned(), retries.into());
        }
        Ok(item)
    }

    /// Reads the logs of an attempt, with those of its nested steps.
    async fn logs(&self, attempt: &Record, has_retries: bool) -> Result<Vec<Value>> {
        // The path of an item with retries contains them too.
        let filter = match attempt.get("path").and_then(Value::as_str) {
            Some(path) if !has_retries => format!("filter.under.path={}", segment(path)),
            _ => {
                let id = attempt.get("id").and_then(Value::as_i64).context("an item has no id")?;
                format!("filter.eq.item={id}")
            }
        };
        let (mut logs, mut files) = (Vec::new(), 0);
        for page in 1..=LOGS / PAGE {
            let path = format!("{}/log?{filter}", self.at);
            let (read, is_last) = self.page(&path, page).await?;
            for log in read {
                let mut kept = json!({"level": log.get("level"), "message": log.get("message")});
                if files < FILES
                    && let Some(file) = self.file(&log).await?
                {
                    files += 1;
                    kept["file"] = file;
                }
                logs.push(kept);
            }
            if is_last {
                break;
            }
        }
        Ok(logs)
    }

    /// Reads the file of a log. Returns its path and media type.
    async fn file(&self, log: &Record) -> Result<Option<Value>> {
        let Some(id) = log.get("binaryContent").and_then(|file| file.get("id")) else {
            return Ok(None);
        };
        let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
        let name: String = id.chars().filter(char::is_ascii_alphanumeric).take(100).collect();
        let target = self.folder.join(format!("file-{name}"));
        let path = format!("/api/v1/data/{}/{}", self.name, segment(&id));
        if !self.remote.download(&path, LARGEST_FILE, &target).await? {
            note(format_args!("file {id} is missing or larger than 32 MiB, and is left out"));
            return Ok(None);
        }
        let content_type = log.get("binaryContent").and_then(|file| file.get("contentType"));
        Ok(Some(json!({"id": name, "contentType": content_type})))
    }

    /// Reads a page of a list. Returns whether it is the last one.
    async fn page(&self, path: &str, page: u64) -> Result<(Vec<Record>, bool)> {
        let path = format!("{path}&page.size={PAGE}&page.page={page}&page.sort=id,ASC");
        ensure!(page <= PAGES, "the list has more than {PAGES} pages");
        let mut answer = self.remote.get(&path).await?;
        let pages = answer["page"]["totalPages"].as_u64().unwrap_or(1);
        let content = answer.get_mut("content").map(Value::take).unwrap_or_default();
        let records = serde_json::from_value(content);
        let records: Vec<Record> =
            records.context("the answer has no records: check that --from is ReportPortal")?;
        let is_last = page >= pages || records.is_empty();
        Ok((records, is_last))
    }
}

/// Ends the last line of a list. Fails if the list is too large.
fn end_line(lines: &mut Vec<u8>) -> Result<()> {
    lines.push(b'\n');
    ensure!(lines.len() <= LARGEST_LIST, "the list has more than {LARGEST_LIST} bytes");
    Ok(())
}
