//! Exports the results of an execution, and the files that they refer to.

mod lines;

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use assay_client::{Answer, Attempts, ClientError, Pages, segment};
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use self::lines::Lines;
use crate::{
    folder::{Folder, Name, Part, Place},
    interface::Interface,
    progress::note,
};

/// Number of attempts to download a file: over about four minutes, beside the time that they take.
const ATTEMPTS: u32 = 30;

/// Maximum size of the results of an execution, in bytes.
const LARGEST_RESULTS: u64 = 16 << 30;

/// The fields of results that are links.
const LINKS: [&str; 5] =
    ["ArtifactsUri", "ReportUri", "DebugLogUri", "ExecutionLogUri", "InstallationLogUri"];

/// The names in the export of files that only the results of one test case refer to, by its
/// identifier and the name.
#[derive(Default)]
pub(super) struct Names(HashMap<(String, String), Name>);

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Artifact {
    id: Uuid,
    name: String,
    content_type: String,
    size: u64,
    test_case_identifier: Option<String>,
    uri: String,
}

impl Artifact {
    /// Returns the path of the file, with the signature of its link. The installation may be reached
    /// under another address than its public one, so the host of the link does not matter.
    fn path(&self) -> Result<String> {
        let name = Name::parse(&self.name)?;
        let path = format!("/api/artifacts/{}/{}", self.id, segment(name.as_str()));
        let (place, signature) = self.uri.split_once('?').unwrap_or((&self.uri, ""));
        ensure!(place.ends_with(&path), "the link of the file {name} is not one to this file");
        Ok(format!("{path}?{signature}"))
    }
}

/// Exports the files of an execution. Each has a name of its own: engines can store files with the
/// same name for different test cases.
pub(super) async fn export(
    interface: &Interface,
    path: &str,
    folder: &mut Folder,
    execution: &Name,
) -> Result<Names> {
    let mut names = Names::default();
    let mut part = folder.begin(&Place::files(execution))?;
    let mut pages = Pages::of(&format!("{path}/results/artifacts"), "limit=100");
    while let Some(page) = pages.next() {
        let artifacts = interface.page::<Artifact>(&mut pages).await?;
        for artifact in artifacts.unwrap_or_default() {
            let link = artifact.path()?;
            let name = names.of(&artifact, Name::parse(&artifact.name)?)?;
            let file = Place::file(execution, &name);
            if !folder.has(&file) {
                let entry = Entry { page: &page, artifact: &artifact };
                let downloaded = download(interface, entry, link, folder, &file).await?;
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
    fn of(&mut self, artifact: &Artifact, name: Name) -> Result<Name> {
        let Some(identifier) = &artifact.test_case_identifier else { return Ok(name) };
        // The end of an id is random.
        let random: String = artifact.id.to_string().chars().rev().take(12).collect();
        let unique = name.with_prefix(&Name::parse(&random)?);
        self.0.insert((identifier.clone(), artifact.name.clone()), unique.clone());
        Ok(unique)
    }

    /// Replaces the names of files in a result.
    fn replace(&self, result: &mut Map<String, Value>) {
        let identifier = result.get("Identifier").and_then(Value::as_str).unwrap_or_default();
        let identifier = identifier.to_owned();
        let replace = |link: &mut Value| {
            let Some(name) = link.as_str() else { return };
            if let Some(new) = self.0.get(&(identifier.clone(), name.to_owned())) {
                *link = new.as_str().into();
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
    place: &Place,
    names: &Names,
) -> Result<Part> {
    let read = async |mut answer: Answer| {
        let (mut part, mut lines) = (folder.begin(place)?, Lines::default());
        while let Some(chunk) = answer.chunk(LARGEST_RESULTS).await? {
            lines.add(&chunk, |line| add_result(&mut part, line, names))?;
        }
        lines.end(|line| add_result(&mut part, line, names))?;
        Ok(part)
    };
    interface.receive(&format!("{path}/results"), read).await
}

fn add_result(part: &mut Part, line: &[u8], names: &Names) -> Result<()> {
    if names.0.is_empty() {
        part.write(line)?;
        part.add_lines(1);
        return Ok(());
    }
    let mut result = serde_json::from_slice(line)?;
    names.replace(&mut result);
    part.line(&result)
}

/// An artifact, and the path of the page that lists it.
#[derive(Clone, Copy)]
struct Entry<'a> {
    page: &'a str,
    artifact: &'a Artifact,
}

impl Entry<'_> {
    /// Reads the page again, and returns the new link to the artifact as [`Artifact::path`] does.
    async fn renewed(&self, interface: &Interface) -> Result<String> {
        let artifacts = interface.get::<Vec<Artifact>>(self.page).await?;
        let found = artifacts.iter().find(|listed| listed.id == self.artifact.id);
        let gone = || format!("the file {} was replaced; repeat the export", self.artifact.name);
        found.with_context(gone)?.path()
    }
}

/// Downloads the file of an artifact, from its beginning again if the response breaks off. The links of a page expire
/// while its files are downloaded; then a new one is used.
async fn download(
    interface: &Interface,
    entry: Entry<'_>,
    mut path: String,
    folder: &Folder,
    place: &Place,
) -> Result<Part> {
    let (mut attempts, mut is_renewed) = (Attempts::new(ATTEMPTS), false);
    let size = entry.artifact.size;
    loop {
        let mut part = folder.begin(place)?;
        let Some(error) = receive(interface, &path, size, &mut part).await? else {
            let bytes = part.bytes();
            ensure!(bytes == size, "GET {path}: {bytes} bytes have arrived instead of {size}");
            return Ok(part);
        };
        let has_expired = error.status() == Some(StatusCode::FORBIDDEN) && !is_renewed;
        is_renewed = has_expired;
        if has_expired {
            path = entry.renewed(interface).await?;
            continue;
        }
        let waited = attempts.wait_after(error, false, |error| {
            note(format_args!("the download of {place} broke off; will repeat it: {error}"));
        });
        waited.await.with_context(|| format!("GET {path}"))?;
    }
}

/// Requests and writes a file of at most this size. Returns the failure of the request.
async fn receive(
    interface: &Interface,
    path: &str,
    size: u64,
    part: &mut Part,
) -> Result<Option<ClientError>> {
    let mut answer = match interface.download(path, "", 0).await {
        Ok(answer) => answer,
        Err(error) => return Ok(Some(error)),
    };
    loop {
        match answer.chunk(size).await {
            Ok(Some(chunk)) => part.write(&chunk)?,
            Ok(None) => return Ok(None),
            Err(error) => return Ok(Some(error)),
        }
    }
}
