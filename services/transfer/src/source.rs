//! Files of other tools, which are converted to an export.
//!
//! There is a reader for each tool behind the trait [`Source`]. It passes on test cases, runs and
//! results as it reads them, in any order; [`Store`] writes them to disk.

mod allure;
mod files;
mod head;
mod json;
mod kiwi;
mod model;
mod reportportal;
mod store;
mod testlink;
mod testrail;
mod text;
mod xml;

use std::path::{Path, PathBuf};

use anyhow::Result;

use self::store::Store;
pub(crate) use self::{files::Format, reportportal::is_result as is_result_of_reportportal};
use crate::{folder, progress::note};

/// A reader of the files of a tool.
trait Source {
    /// Name of the tool, which keys of executions begin with.
    fn name(&self) -> &'static str;

    /// Reads all files. Fails at the first one that is broken, with its line.
    fn read(&mut self, files: &[PathBuf], store: &mut Store) -> Result<()>;
}

/// Converts files and folders to an export in the folder `work`. A conversion there is replaced.
pub(crate) fn convert(from: &[PathBuf], format: Format, work: &Path) -> Result<()> {
    let (format, files) = files::find(from, format, work)?;
    convert_from(from, &files, format, work)
}

/// Converts files of a known format.
pub(crate) fn convert_files(files: &[PathBuf], format: Format, work: &Path) -> Result<()> {
    convert_from(&[], files, format, work)
}

/// Converts files that are in these folders, or are given themselves.
fn convert_from(from: &[PathBuf], files: &[PathBuf], format: Format, work: &Path) -> Result<()> {
    let mut source: Box<dyn Source> = match format {
        Format::Testrail => Box::<testrail::TestRail>::default(),
        Format::Testlink => Box::<testlink::TestLink>::default(),
        Format::Kiwi => Box::<kiwi::Kiwi>::default(),
        Format::Reportportal => Box::<reportportal::ReportPortal>::default(),
        Format::Allure => Box::<allure::Allure>::default(),
        Format::Auto | Format::Assay => unreachable!("these are not formats of another tool"),
    };
    folder::remove(work)?;
    let mut store = Store::create(source.name(), work, from)?;
    source.read(files, &mut store)?;
    store.complete()?.iter().for_each(note);
    Ok(())
}

#[cfg(test)]
mod tests;
