//! Imports the files of a project, and the references of records to them. A file that the project has already
//! is found by its SHA-256 and its name.

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use assay_client::visible;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{Finished, Target, catalog::existing, fields::moved, resumable::upload, text};
use crate::{
    folder::{Entry, PROJECT, Place, Reader, STORED_FILES},
    progress::Progress,
};

type Record = Map<String, Value>;

/// Finds or uploads the files of the export.
pub(super) async fn import(
    target: &mut Target,
    reader: &Reader,
    finished: &mut Finished,
) -> Result<()> {
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
        let new = if let Some((id, _)) = existing.get_mut(&key(&file)).and_then(Vec::pop) {
            id
        } else {
            let described = (text(&file, "Name"), text(&file, "ContentType"));
            let contents = reader.contents(&place)?;
            let source = format!("{old} {}", contents.sha256);
            let (earlier, begin) =
                (finished.upload(&source), |id| finished.begin_upload(&source, id));
            let uploads = (&target.interface, target.at.as_str());
            let uploaded = upload(uploads, described, &contents, (earlier, begin)).await;
            uploaded.with_context(at)?.to_string()
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
