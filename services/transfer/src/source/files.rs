//! The files to convert, and their format.

use std::{
    fs::{self, DirEntry},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use super::{allure, head::head, kiwi, reportportal, testlink, testrail};
use crate::{folder, progress::note};

/// Format of files to import.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq)]
pub(crate) enum Format {
    /// Recognized by the contents
    Auto,
    /// Export of `assay export`
    Assay,
    /// XML and CSV exports of TestRail: test cases, and runs with results
    Testrail,
    /// XML exports of TestLink: test suites, and results
    Testlink,
    /// JSON of Kiwi TCMS, as its JSON-RPC methods `….filter` return it
    Kiwi,
    /// JSON pages of launches and items of ReportPortal
    Reportportal,
    /// History of Allure 2 (history.json) or Allure 3 (history.jsonl)
    Allure,
}

impl Format {
    /// Recognizes the format of a file by its beginning.
    fn of(head: &str) -> Option<Self> {
        let known = [
            (testrail::is_testrail(head), Self::Testrail),
            (testlink::is_testlink(head), Self::Testlink),
            (kiwi::is_kiwi(head), Self::Kiwi),
            (allure::is_allure(head), Self::Allure),
            (reportportal::is_reportportal(head), Self::Reportportal),
        ];
        known.into_iter().find_map(|(is_so, format)| is_so.then_some(format))
    }
}

/// Returns the files, those in folders in the order of their paths, and their format. Files of a folder
/// in another format are left out. `work` is not part of the source.
pub(super) fn find(
    from: &[PathBuf],
    format: Format,
    work: &Path,
) -> Result<(Format, Vec<PathBuf>)> {
    let mut files = Vec::new();
    for path in from {
        if path.is_dir() {
            collect(path, work, &mut files)?;
        } else {
            files.push(path.clone());
        }
    }
    let mut found = Vec::new();
    for file in files {
        let known = recognize(&file)?;
        let is_meant = format == Format::Auto || known == Some(format);
        match known.filter(|_| is_meant) {
            Some(known) => found.push((known, file)),
            None if from.contains(&file) => bail!(
                "{} is not a file of a known format; see `assay import --help` for the formats",
                file.display()
            ),
            None => note(format_args!("{} is left out", file.display())),
        }
    }
    let Some((format, _)) = found.first() else { bail!("--from: no file of a known format") };
    let format = *format;
    if let Some((other, file)) = found.iter().find(|(other, _)| *other != format) {
        bail!("{} has the format {other:?}, others {format:?}; import them apart", file.display());
    }
    Ok((format, found.into_iter().map(|(_, file)| file).collect()))
}

fn collect(folder: &Path, work: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let read = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut entries = read.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(DirEntry::path);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type()?);
        // Links can lead to files of others, and into circles.
        if !kind.is_dir() && !kind.is_file() {
            note(format_args!("{} is left out: it is not a file", path.display()));
        } else if kind.is_dir() {
            if path != work && !folder::is_complete(&path) && !folder::is_begun(&path) {
                collect(&path, work, files)?;
            }
        } else {
            files.push(path);
        }
    }
    Ok(())
}

fn recognize(file: &Path) -> Result<Option<Format>> {
    Ok(Format::of(&head(file)?))
}
