//! Exports the files of a project with their contents. Downloads are continued where they broke off, also by
//! the next export.

use anyhow::{Context, Result, bail, ensure};
use assay_client::{Attempts, ClientError};
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{ids, missing};
use crate::{
    folder::{Folder, Part, Place, STORED_FILES},
    interface::Interface,
    progress::{Progress, note},
};

/// Number of attempts in a row that bring no byte, after which a download is given up: over about four minutes.
const ATTEMPTS: u32 = 30;

/// Contents that a file must have.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Expected {
    id: Uuid,
    size: u64,
    sha256: String,
}

/// Exports the files, oldest first.
pub(super) async fn export(interface: &Interface, at: &str, folder: &mut Folder) -> Result<()> {
    if folder.has(&STORED_FILES) {
        return Ok(());
    }
    let all = ids(interface, &[format!("{at}/files")]).await?;
    let (mut part, before) = folder.resume::<super::Listed>(&STORED_FILES)?;
    let mut progress = Progress::new("files", Some(all.len() as u64));
    progress.add(before.len() as u64);
    for id in missing(&all, &before) {
        let path = format!("{at}/files/{id}");
        let record = interface.get::<Map<String, Value>>(&path).await?;
        let expected = Expected::of(id, &record).with_context(|| format!("GET {path}"))?;
        contents(interface, &format!("{path}/contents"), folder, &expected).await?;
        part.line(&record)?;
        part.flush()?;
        progress.add(1);
    }
    progress.end();
    folder.finish(part)
}

impl Expected {
    fn of(id: Uuid, record: &Map<String, Value>) -> Result<Self> {
        let expected: Self = serde_json::from_value(record.clone().into())?;
        ensure!(expected.id == id, "the answer is another file");
        let is_hash = expected.sha256.len() == 64
            && expected.sha256.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        ensure!(is_hash, "the SHA-256 of the file is not valid");
        Ok(expected)
    }
}

/// Downloads the contents of a file, and compares their size and SHA-256.
async fn contents(
    interface: &Interface,
    path: &str,
    folder: &mut Folder,
    expected: &Expected,
) -> Result<()> {
    let place = Place::stored_file(expected.id);
    if folder.has(&place) {
        return Ok(());
    }
    let mut part = folder.append(&place)?;
    if part.bytes() > expected.size {
        part = folder.begin(&place)?;
    }
    let mut attempts = Attempts::new(ATTEMPTS);
    while part.bytes() < expected.size {
        let before = part.bytes();
        let rest = rest(interface, path, folder, expected, &mut part).await;
        let Some(error) = rest.with_context(|| format!("GET {path}"))? else { break };
        let waited = attempts.wait_after(error, part.bytes() > before, |error| {
            note(format_args!("the download of {place} broke off; will continue it: {error}"));
        });
        if let Err(error) = waited.await {
            part.flush()?;
            return Err(anyhow::Error::from(error).context(format!("GET {path}")));
        }
    }
    let (size, sha256) = (part.bytes(), part.sha256());
    if size != expected.size || sha256 != expected.sha256 {
        // The next export downloads it from its beginning.
        folder.begin(&place)?;
        let Expected { size: expected_size, sha256: expected_sha256, .. } = expected;
        bail!(
            "GET {path}: {size} bytes with the SHA-256 {sha256} have arrived instead of {expected_size} bytes \
             with {expected_sha256}; repeat the export"
        );
    }
    folder.finish(part)
}

/// Requests and writes the rest of the contents. Returns the failure of the request.
async fn rest(
    interface: &Interface,
    path: &str,
    folder: &Folder,
    expected: &Expected,
    part: &mut Part,
) -> Result<Option<ClientError>> {
    let mut answer = match interface.download(path, &expected.sha256, part.bytes()).await {
        Ok(answer) => answer,
        Err(error) => return Ok(Some(error)),
    };
    if answer.status() != StatusCode::PARTIAL_CONTENT && part.bytes() > 0 {
        *part = folder.begin(&Place::stored_file(expected.id))?;
    }
    let limit = expected.size - part.bytes();
    loop {
        match answer.chunk(limit).await {
            Ok(Some(chunk)) => part.write(&chunk)?,
            Ok(None) => return Ok(None),
            Err(error) => return Ok(Some(error)),
        }
    }
}
