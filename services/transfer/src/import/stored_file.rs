//! Imports the files of a project, and the references of records to them. A file that the project has already
//! is found by its SHA-256 and its name.

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use assay_client::{segment, visible};
use reqwest::header::CONTENT_TYPE;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{Target, catalog::existing, fields::moved, id, text, upload::with_contents};
use crate::{
    folder::{Contents, Entry, PROJECT, Place, Reader, STORED_FILES},
    progress::Progress,
};

type Record = Map<String, Value>;

/// The media type of a file that has none.
const ANYTHING: &str = "application/octet-stream";

/// Finds or uploads the files of the export.
pub(super) async fn import(target: &mut Target, reader: &Reader) -> Result<()> {
    if reader.file(&STORED_FILES)?.is_none() {
        return Ok(());
    }
    let key = |record: &Record| format!("{}\n{}", text(record, "Sha256"), text(record, "Name"));
    let mut existing = existing(target, &[("files", false)], key).await?;
    let (mut ids, mut progress) = (HashMap::new(), Progress::new("files", None));
    for line in reader.lines::<Record>(&STORED_FILES)? {
        let line = line?;
        let at = || format!("{STORED_FILES}, line {}", line.number);
        let file = line.record;
        let old = Uuid::try_parse(text(&file, "Id")).with_context(at)?;
        let place = Place::stored_file(old);
        let entry = reader.entry(&place).with_context(at)?;
        compare(&file, entry).with_context(at)?;
        let new = match existing.get_mut(&key(&file)).and_then(Vec::pop) {
            Some((id, _)) => id,
            None => upload(target, &file, &reader.contents(&place)?).await.with_context(at)?,
        };
        ids.insert(old.to_string(), new);
        progress.add(1);
    }
    progress.end();
    target.files = ids;
    Ok(())
}

/// Fails if the contents of a file, which have been verified, are not those of its record.
fn compare(file: &Record, entry: &Entry) -> Result<()> {
    let (sha256, size) = (text(file, "Sha256"), file.get("Size").and_then(Value::as_u64));
    ensure!(
        sha256 == entry.sha256 && size == Some(entry.bytes),
        "{} has {} bytes with the SHA-256 {}, which are not those of the file",
        entry.path,
        entry.bytes,
        visible(&entry.sha256)
    );
    Ok(())
}

/// Uploads a file. Returns its new id.
async fn upload(target: &Target, file: &Record, contents: &Contents) -> Result<String> {
    let media_type = text(file, "ContentType");
    let is_form = media_type.trim_start().to_ascii_lowercase().starts_with("multipart/");
    let media_type = if media_type.is_empty() || is_form { ANYTHING } else { media_type };
    let (name, path) = (segment(text(file, "Name")), format!("{}/files", target.at));
    let created = target.interface.create_with(&path, |request| {
        let request = request.header("X-File-Name", &name).header(CONTENT_TYPE, media_type);
        Ok(with_contents(request, contents))
    });
    id(&created.await?)
}

/// Replaces the template for reports of a project that still refers to the file of the exported one.
pub(super) async fn template(target: &Target, reader: &Reader) -> Result<()> {
    let Some(line) = reader.lines::<Record>(&PROJECT)?.next().transpose()? else { return Ok(()) };
    let old = text(&line.record, "ReportTemplateId");
    let new = moved(old, &target.files);
    // An export without files may be imported into the project that it is from.
    if old == new || text(&line.record, "Id") == target.id {
        return Ok(());
    }
    let project: Record = target.interface.get(&target.at).await?;
    if text(&project, "ReportTemplateId") == old {
        target.interface.put(&target.at, &json!({"ReportTemplateId": new})).await?;
    }
    Ok(())
}
