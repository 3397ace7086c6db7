//! Logs and their files.

use std::path::Path;

use anyhow::Result;
use serde_json::{Map, Value};

use crate::{
    folder::Name,
    source::{json::text, model::Attachment},
};

/// Returns the logs of an attempt, errors first, and their files, which are beside that of the items.
/// Only items that were read from a URL have logs.
pub(super) fn logs(
    attempt: &Map<String, Value>,
    folder: &Path,
) -> Result<(String, Vec<Attachment>)> {
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
