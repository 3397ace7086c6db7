//! Imports an export into a project.

mod catalog;
mod completion;
mod execution;
mod fields;
mod finished;
mod resumable;
mod review;
mod send;
mod stored_file;
mod test_case;
mod upload;

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use assay_client::visible;
use serde_json::{Map, Value};
use uuid::Uuid;

use self::finished::Finished;
use crate::{
    access::Access,
    folder::{self, Reader},
    interface::Interface,
    live::{self, Origin},
    progress::{note, printable},
    source::{Format, convert, convert_files},
};

/// Import an export, or files of another tool, into a project
///
/// The token needs the permissions Read, Write and Execute, and Accept and Reject for reviews. Files
/// of other tools are first converted to an export in the folder --work; nothing is sent before all of
/// them are read. If the import is interrupted, the same command continues it: records that exist
/// already are found by their identifiers, names and keys, and an upload goes on where it broke off. Results keep their
/// times; executions from the past cause no notifications and mails.
#[derive(clap::Args, Clone, Debug)]
pub struct Import {
    #[command(flatten)]
    access: Access,
    /// Folder of an export, files or folders of another tool, or the URL of ReportPortal or Kiwi TCMS
    #[arg(long, required = true, num_args = 1..)]
    from: Vec<PathBuf>,
    /// Format of the files. Required for a URL: reportportal or kiwi
    #[arg(long, value_enum, default_value = "auto")]
    format: Format,
    #[command(flatten)]
    origin: Origin,
    /// Name or id of the project; created if there is none with this name. Default: the name in the
    /// export
    #[arg(long, env = "ASSAY_PROJECT")]
    project: Option<String>,
    /// Folder for converted files and the progress. Default: that of an export itself,
    /// `<from>.import` for files of another tool, and `<host>-<source-project>.import` for a URL
    #[arg(long)]
    work: Option<PathBuf>,
    /// Convert and check the files, but send nothing
    #[arg(long)]
    check: bool,
}

/// The project that is imported to, and what its records are there.
struct Target {
    interface: Interface,
    /// The path of the project.
    at: String,
    id: String,
    /// Ids by those in the export.
    files: HashMap<String, String>,
    subjects: HashMap<String, String>,
    environments: HashMap<String, String>,
    sets: HashMap<String, String>,
    /// Ids of active test cases by identifier.
    cases: HashMap<String, String>,
}

impl Import {
    /// Imports the files.
    pub async fn run(self) -> Result<()> {
        self.import().await.map_err(|error| printable(&error))
    }

    async fn import(self) -> Result<()> {
        let (export, work) = self.prepare().await?;
        let (reader, manifest) = Reader::open(&export)?;
        note(format_args!("{}: {}", export.display(), summary(&manifest.counts)));
        if self.check {
            return Ok(());
        }
        let interface = Interface::new(&self.access.account()?)?;
        let mut target = catalog::open(interface, &reader, self.project.as_deref()).await?;
        let mut finished = Finished::open(&work, &target.id)?;
        catalog::reopen(&target, &mut finished).await?;
        stored_file::import(&mut target, &reader, &mut finished).await?;
        stored_file::template(&target, &reader).await?;
        catalog::create(&mut target, &reader, &mut finished).await?;
        execution::import(&target, &reader, &mut finished).await?;
        completion::complete(&target, &reader, &mut finished).await
    }

    /// Returns the folder of the export, to which files of other tools are converted, and the one for
    /// the progress.
    async fn prepare(&self) -> Result<(PathBuf, PathBuf)> {
        let first = self.from.first().context("--from is required")?;
        if let Some(url) = live::url_of(first) {
            ensure!(self.from.len() == 1, "--from: only one URL can be imported at a time");
            let work = self.work.clone().unwrap_or_else(|| self.origin.folder(&url));
            let source = work.join("source");
            let files = live::read(&url, self.format, &self.origin, &source).await?;
            convert_files(&files, self.format, &work)?;
            return Ok((work.clone(), work));
        }
        let is_export = folder::is_complete(first) || folder::is_begun(first);
        if is_export && matches!(self.format, Format::Auto | Format::Assay) {
            ensure!(self.from.len() == 1, "--from: only one export can be imported at a time");
            return Ok((first.clone(), self.work.clone().unwrap_or_else(|| first.clone())));
        }
        let work = self.work.clone().unwrap_or_else(|| with_suffix(first));
        convert(&self.from, self.format, &work)?;
        Ok((work.clone(), work))
    }
}

/// Returns the path beside a source.
fn with_suffix(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".import");
    path.with_file_name(name)
}

fn summary(counts: &BTreeMap<String, u64>) -> String {
    let noun = |file: &str| file.trim_end_matches(".ndjson").to_owned();
    let counts = counts.iter().map(|(file, count)| format!("{count} {}", noun(file)));
    counts.collect::<Vec<_>>().join(", ")
}

/// Returns the text of a field; empty if it has none.
fn text<'r>(record: &'r Map<String, Value>, field: &str) -> &'r str {
    record.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the id of a record of Assay. Fails if it is not one, such as a path.
fn id(record: &Map<String, Value>) -> Result<String> {
    let id = text(record, "Id");
    let parsed = Uuid::parse_str(id);
    let parsed = parsed.with_context(|| format!("Assay answered with the id {:?}", visible(id)))?;
    Ok(parsed.to_string())
}

/// Returns whether a field is true.
fn is(record: &Map<String, Value>, field: &str) -> bool {
    record.get(field).and_then(Value::as_bool).unwrap_or_default()
}

/// Returns those of the fields that are not null.
fn only(record: &Map<String, Value>, fields: &[&str]) -> Map<String, Value> {
    let given =
        record.iter().filter(|(name, value)| fields.contains(&name.as_str()) && !value.is_null());
    given.map(|(name, value)| (name.clone(), value.clone())).collect()
}
