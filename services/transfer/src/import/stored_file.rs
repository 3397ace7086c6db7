//! Imports the files of a project, and the references of records to them. A file that the project has already
//! is found by its SHA-256 and its name.

use std::{collections::HashMap, time::Duration};

use anyhow::{Context, Result, ensure};
use assay_client::{segment, visible};
use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{Target, catalog::existing, fields::moved, id, text};
use crate::{
    folder::{Entry, PROJECT, Place, Reader, STORED_FILES},
    progress::Progress,
};

type Record = Map<String, Value>;

/// Timeout of an upload.
const UPLOAD: Duration = Duration::from_hours(24);

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
            None => upload(target, reader, &file, &place, entry).await.with_context(at)?,
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

/// Uploads a file, which Assay compares with its SHA-256. Returns its new id.
async fn upload(
    target: &Target,
    reader: &Reader,
    file: &Record,
    place: &Place,
    entry: &Entry,
) -> Result<String> {
    let media_type = text(file, "ContentType");
    let is_form = media_type.trim_start().to_ascii_lowercase().starts_with("multipart/");
    let media_type = if media_type.is_empty() || is_form { ANYTHING } else { media_type };
    let (name, digest) = (segment(text(file, "Name")), repr_digest(&entry.sha256));
    let path = format!("{}/files", target.at);
    let created = target.interface.create_with(&path, |request| {
        let contents = reader.file(place)?.with_context(|| format!("there is no {place}"))?;
        let request = request.header("X-File-Name", &name).header("Repr-Digest", &digest);
        let request = request.header(CONTENT_TYPE, media_type).header(CONTENT_LENGTH, entry.bytes);
        Ok(request.timeout(UPLOAD).body(tokio::fs::File::from_std(contents)))
    });
    id(&created.await?)
}

/// Returns the header with a SHA-256 in hexadecimal digits (RFC 9530).
fn repr_digest(sha256: &str) -> String {
    let byte = |index: usize| u8::from_str_radix(sha256.get(index..index + 2)?, 16).ok();
    let bytes: Vec<u8> = (0..sha256.len()).step_by(2).filter_map(byte).collect();
    format!("sha-256=:{}:", BASE64_STANDARD.encode(bytes))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_sent_in_base64() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let expected = "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:";
        assert_eq!(repr_digest(empty), expected);
    }
}
