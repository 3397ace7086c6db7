//! Imports executions with their results and files.

use std::collections::HashMap;

use anyhow::{Context, Result, bail};
use assay_client::{Answer, segment};
use assay_digest::hex;
use aws_lc_rs::digest;
use reqwest::{Method, RequestBuilder, header::CONTENT_TYPE};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value, json};

use super::{Finished, Target, id, is, only, review, send::batches, text, upload::with_contents};
use crate::{
    folder::{Contents, EXECUTIONS, Name, Place, Reader},
    interface::{has_code, read_streamed},
    progress::Progress,
};

type Record = Map<String, Value>;

/// Time after which an interrupted import ends an execution, in seconds: a day.
const GRACE: u32 = 86_400;

/// Maximum number of executions for one of the export, of which only the last one is complete.
const ATTEMPTS: u32 = 20;

/// The fields of an execution that are the same in the target.
const FIELDS: [&str; 9] = [
    "Key",
    "Tags",
    "Branch",
    "Commit",
    "Build",
    "CiUrl",
    "RequestTime",
    "CompletionDateTime",
    "Notes",
];

/// A file of an execution.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct File {
    name: String,
    content_type: String,
}

/// An artifact of an execution in the target.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Artifact {
    name: String,
    #[serde(default)]
    size: u64,
}

/// Imports the executions in the order of the export, oldest first.
pub(super) async fn import(
    target: &Target,
    reader: &Reader,
    finished: &mut Finished,
) -> Result<()> {
    let mut progress = Progress::new("executions", None);
    for line in reader.lines::<Record>(&EXECUTIONS)? {
        let line = line?;
        let at = || format!("{EXECUTIONS}, line {}", line.number);
        let run = Name::parse(text(&line.record, "Id")).with_context(at)?;
        if !finished.has(run.as_str()) {
            execution(target, reader, &line.record, &run).await.with_context(at)?;
            finished.add(run.as_str())?;
        }
        progress.add(1);
    }
    progress.end();
    Ok(())
}

/// Imports an execution. If an earlier import was interrupted and its execution has ended meanwhile,
/// archives that one and begins again.
async fn execution(target: &Target, reader: &Reader, header: &Record, run: &Name) -> Result<()> {
    for attempt in 1..=ATTEMPTS {
        let input = input(target, header, attempt);
        let opened = open(target, &input, &key(target, header, attempt)).await?;
        let at = format!("{}/executions/{}", target.at, id(&opened)?);
        let has_ended = opened.get("CompletionDateTime").is_some_and(|end| !end.is_null());
        if !has_ended {
            files(target, reader, run, &at).await?;
        }
        match results(target, reader, header, run, &at).await {
            Ok(()) => {
                if !has_ended {
                    end(target, header, &at).await?;
                }
                review::import(target, reader, run, &at).await?;
                if is(header, "Archived") {
                    target.interface.put(&at, &json!({"Archived": true})).await?;
                }
                return Ok(());
            }
            Err(error) if has_code(&error, "execution_ended") => {
                target.interface.put(&at, &json!({"Archived": true})).await?;
            }
            Err(error) => return Err(error),
        }
    }
    bail!("{ATTEMPTS} imports of the execution have ended before they were complete")
}

/// Returns the options of the execution in the target.
fn input(target: &Target, header: &Record, attempt: u32) -> Record {
    let mut input = only(header, &FIELDS);
    let set = target.sets.get(text(header, "TestSetId")).cloned();
    let set = set.unwrap_or_else(|| text(header, "TestSetName").to_owned());
    input.insert("Project".to_owned(), target.id.clone().into());
    input.insert("TestSet".to_owned(), set.into());
    input.insert("GraceInSec".to_owned(), GRACE.into());
    input.entry("Tags").or_insert_with(|| "".into());
    if let (Some(key), 2..) = (header.get("Key").and_then(Value::as_str), attempt) {
        input.insert("Key".to_owned(), format!("{key}-{attempt}").into());
    }
    let ids = [
        ("SubjectId", target.subjects.get(text(header, "SoftwareVersionId"))),
        ("EnvironmentId", target.environments.get(text(header, "EnvironmentId"))),
    ];
    for (field, id) in ids {
        input.extend(id.map(|id| (field.to_owned(), id.clone().into())));
    }
    input
}

/// Returns the idempotency key, which follows from the source and the target.
fn key(target: &Target, header: &Record, attempt: u32) -> String {
    let source = format!("{}\n{}\n{attempt}", target.id, text(header, "Id"));
    let digest = digest::digest(&digest::SHA256, source.as_bytes());
    format!("import-{}", hex(&digest.as_ref()[..16]))
}

/// Opens the execution, or finds the one that an interrupted import has opened.
async fn open(target: &Target, input: &Record, key: &str) -> Result<Record> {
    let opened = match request(target, input, Some(key)).await {
        // Times in the future were imported as the time of that import. The key of the execution finds it.
        Err(error) if has_code(&error, "idempotency_key_reused") && input.contains_key("Key") => {
            request(target, input, None).await?
        }
        opened => opened?,
    };
    let skip = |(): &mut (), _: IgnoredAny| Ok(());
    let (opened, ()) = read_streamed(opened, "TestReports", (), skip).await?;
    Ok(opened)
}

async fn request(target: &Target, input: &Record, key: Option<&str>) -> Result<Answer> {
    let build = |request: RequestBuilder| match key {
        Some(key) => request.header("Idempotency-Key", key).json(input),
        None => request.json(input),
    };
    target.interface.send(Method::POST, "/api/executions", build).await
}

/// Uploads the files of an execution, except those that an interrupted import has uploaded.
async fn files(target: &Target, reader: &Reader, run: &Name, at: &str) -> Result<()> {
    let mut lines = reader.lines::<File>(&Place::files(run))?.peekable();
    if lines.peek().is_none() {
        return Ok(());
    }
    let mut stored = HashMap::new();
    let list = format!("{at}/results/artifacts");
    let add = |Artifact { name, size }: Artifact| {
        stored.insert(name, size);
        Ok(())
    };
    target.interface.list(&list, add).await?;
    for line in lines {
        let File { name, content_type } = line?.record;
        let name = Name::parse(&name)?;
        let contents = reader.contents(&Place::file(run, &name))?;
        if stored.get(name.as_str()) == Some(&contents.bytes) {
            continue;
        }
        let path = format!("{at}/results/artifacts/{}", segment(name.as_str()));
        upload(target, &contents, &path, &content_type).await?;
    }
    Ok(())
}

async fn upload(
    target: &Target,
    contents: &Contents,
    path: &str,
    content_type: &str,
) -> Result<()> {
    let build = |request: RequestBuilder| {
        let request = with_contents(request, contents);
        if content_type.is_empty() { request } else { request.header(CONTENT_TYPE, content_type) }
    };
    target.interface.send(Method::PUT, path, build).await?;
    Ok(())
}

/// Reports the results of an execution.
async fn results(
    target: &Target,
    reader: &Reader,
    header: &Record,
    run: &Name,
    at: &str,
) -> Result<()> {
    let place = Place::results(run);
    let Some(file) = reader.file(&place)? else { return Ok(()) };
    let is_canceled = text(header, "Status") == "Canceled";
    let change = |line: Vec<u8>| if is_canceled { announced(line) } else { Ok(line) };
    for batch in batches(file, change) {
        let batch = batch?;
        let (first, last) = batch.lines;
        let path = format!("{at}/results");
        let sent = target.interface.send(Method::POST, &path, |request| {
            request.header(CONTENT_TYPE, "application/x-ndjson").body(batch.body.clone())
        });
        sent.await.with_context(|| format!("{place}, lines {first} to {last}"))?;
    }
    Ok(())
}

/// Returns a result without one that the end of the execution has canceled: it is canceled again.
fn announced(line: Vec<u8>) -> Result<Vec<u8>> {
    let mut result: Record = serde_json::from_slice(&line)?;
    let was_run = result.contains_key("StartDateTime") || result.contains_key("Steps");
    if text(&result, "Result") == "Canceled" && !was_run {
        result.insert("Result".to_owned(), "NotExecuted".into());
        return Ok(serde_json::to_vec(&result)?);
    }
    Ok(line)
}

/// Completes or cancels the execution.
async fn end(target: &Target, header: &Record, at: &str) -> Result<()> {
    if text(header, "Status") == "Canceled" {
        target.interface.send(Method::DELETE, at, |request| request).await?;
        return Ok(());
    }
    let path = format!("{at}/complete");
    target.interface.send(Method::POST, &path, |request| request).await?;
    Ok(())
}
