//! Exports the results of an execution, and the files that they refer to.

use std::collections::HashMap;

use anyhow::{Context, Result};
use futures::TryStreamExt;
use reqwest::{Method, Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio_util::io::StreamReader;
use uuid::Uuid;

use crate::{
    folder::{Folder, Part},
    interface::Interface,
};

/// Number of attempts to receive a whole file.
const ATTEMPTS: u32 = 5;

/// The fields of results that are links.
const LINKS: [&str; 5] =
    ["ArtifactsUri", "ReportUri", "DebugLogUri", "ExecutionLogUri", "InstallationLogUri"];

/// The names in the export of files that only the results of one test case refer to, by its
/// identifier and the name.
#[derive(Default)]
pub(super) struct Names(HashMap<(String, String), String>);

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Artifact {
    id: String,
    name: String,
    content_type: String,
    test_case_identifier: Option<String>,
    uri: String,
}

/// Exports the files of an execution. Each has a name of its own: engines can store files with the
/// same name for different test cases.
pub(super) async fn export(
    interface: &Interface,
    path: &str,
    folder: &mut Folder,
    id: Uuid,
) -> Result<Names> {
    let (list, mut names) = (format!("executions/{id}/files.ndjson"), Names::default());
    let mut part = folder.begin(&list)?;
    let mut next = Some(format!("{path}/results/artifacts?limit=100"));
    while let Some(page) = next {
        // The links of a page expire.
        let mut artifacts = Vec::new();
        next = interface
            .page(&page, |artifact: Artifact| {
                artifacts.push(artifact);
                Ok(())
            })
            .await?;
        for artifact in artifacts {
            let name = names.of(&artifact);
            let file = format!("executions/{id}/files/{name}");
            if !folder.has(&file) {
                let downloaded = download(interface, &artifact.uri, folder, &file).await?;
                folder.finish(downloaded)?;
            }
            part.line(&json!({"Name": name, "ContentType": artifact.content_type}))?;
        }
    }
    folder.finish(part)?;
    Ok(names)
}

impl Names {
    /// Returns the name of a file in the export.
    fn of(&mut self, artifact: &Artifact) -> String {
        let Some(identifier) = &artifact.test_case_identifier else { return artifact.name.clone() };
        // The end of an id is random.
        let random: String = artifact.id.chars().rev().take(12).collect();
        let fits = artifact.name.len().saturating_sub(200 - 13);
        let name = format!("{random}-{}", &artifact.name[fits..]);
        self.0.insert((identifier.clone(), artifact.name.clone()), name.clone());
        name
    }

    /// Replaces the names of files in a result.
    fn replace(&self, result: &mut Map<String, Value>) {
        let identifier = result.get("Identifier").and_then(Value::as_str).unwrap_or_default();
        let identifier = identifier.to_owned();
        let replace = |link: &mut Value| {
            let Some(name) = link.as_str() else { return };
            if let Some(new) = self.0.get(&(identifier.clone(), name.to_owned())) {
                *link = new.clone().into();
            }
        };
        for field in LINKS {
            result.get_mut(field).into_iter().for_each(replace);
        }
        let steps = result.get_mut("Steps").and_then(Value::as_array_mut);
        for step in steps.into_iter().flatten() {
            step.get_mut("Thumbnail").into_iter().for_each(replace);
            let screenshots = step.get_mut("Screenshots").and_then(Value::as_array_mut);
            screenshots.into_iter().flatten().for_each(replace);
        }
    }
}

/// Exports the results of an execution as Assay returns them, with the new names of files.
pub(super) async fn results(
    interface: &Interface,
    path: &str,
    folder: &Folder,
    file: &str,
    names: &Names,
) -> Result<Part> {
    let url = format!("{path}/results");
    receive(
        interface,
        &url,
        || folder.begin(file),
        async |answer, part| {
            let body = answer.bytes_stream().map_err(std::io::Error::other);
            let mut lines = BufReader::new(StreamReader::new(Box::pin(body)));
            let mut line = Vec::new();
            while lines.read_until(b'\n', &mut line).await? > 0 {
                if names.0.is_empty() {
                    part.write(&line)?;
                    part.add_lines(1);
                } else {
                    let mut result = serde_json::from_slice(&line)?;
                    names.replace(&mut result);
                    part.line(&result)?;
                }
                line.clear();
            }
            Ok(())
        },
    )
    .await
}

async fn download(interface: &Interface, uri: &str, folder: &Folder, file: &str) -> Result<Part> {
    // The installation may be reached under another address than its public one.
    let path = uri.find("/api/").map_or(uri, |start| &uri[start..]);
    receive(
        interface,
        path,
        || folder.begin(file),
        async |answer, part| {
            let mut body = answer.bytes_stream();
            while let Some(chunk) = body.try_next().await? {
                part.write(&chunk)?;
            }
            Ok(())
        },
    )
    .await
}

/// Receives a response. If it breaks off, it is requested again.
async fn receive(
    interface: &Interface,
    path: &str,
    begin: impl Fn() -> Result<Part>,
    read: impl AsyncFn(Response, &mut Part) -> Result<()>,
) -> Result<Part> {
    for _ in 1..ATTEMPTS {
        let answer = interface.send(Method::GET, path, |request| request).await?;
        let mut part = begin()?;
        if read(answer, &mut part).await.is_ok() {
            return Ok(part);
        }
    }
    let answer = interface.send(Method::GET, path, |request| request).await?;
    let mut part = begin()?;
    read(answer, &mut part).await.with_context(|| format!("GET {path}"))?;
    Ok(part)
}
