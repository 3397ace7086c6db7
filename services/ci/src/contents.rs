//! The tests of reports, and the paths of their attachments.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File as Opened,
    io::{self, BufRead, BufReader, Read},
};

use assay_formats::{
    Content, Nature, Test,
    allure::{self, ARCHIVE, Archive, Files},
    archive,
};
use assay_proto::{Fault, Timestamp};

use crate::files::File;

/// The last result of a test, and when it ran.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) has_failed: bool,
    /// The start of its first attempt, if it is known.
    pub(crate) start: Option<Timestamp>,
    /// The end of its last attempt, if it is known.
    pub(crate) end: Option<Timestamp>,
}

/// The contents of a report.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// The tests by their identifiers and parameters.
    pub(crate) tests: BTreeMap<String, Outcome>,
    /// Paths of files beside the report.
    pub(crate) paths: BTreeSet<String>,
}

impl Contents {
    /// Reads a report, up to a place that is broken. Assay gives the reason why it does not accept a report.
    pub(crate) fn of_file(file: &File) -> io::Result<Self> {
        let mut contents = Self::default();
        let mut opened = BufReader::new(Opened::open(&file.path)?);
        let is_archive = opened.fill_buf()?.starts_with(ARCHIVE);
        let receiver = |test: Test| -> Result<(), Fault> {
            contents.add(test);
            Ok(())
        };
        let _ = if is_archive {
            Archive::open(opened).and_then(|mut files| archive::read(&mut files, receiver))
        } else {
            assay_formats::read(opened, receiver)
        };
        if is_archive {
            // Attachments are in the archive.
            contents.paths.clear();
        }
        Ok(contents)
    }

    /// Reads the files of a folder of Allure results by their names.
    pub(crate) fn of_folder<'f>(files: impl Iterator<Item = (&'f str, &'f File)>) -> Self {
        let mut contents = Self::default();
        let _ = allure::read(&mut Folder(files.collect()), |test: Test| {
            contents.add(test);
            Ok(())
        });
        contents
    }

    fn add(&mut self, test: Test) {
        let has_failed = Nature::of(test.result()).is_some();
        let (start, end) = test.span();
        let outcome = Outcome { has_failed, start, end };
        let key = format!("{} {}", test.identifier(), test.variant());
        self.tests
            .entry(key)
            .and_modify(|before| {
                let start = before.start.into_iter().chain(start).min();
                *before = Outcome { has_failed, start, end: end.max(before.end) };
            })
            .or_insert(outcome);
        let attachments = test.attempts.into_iter().flat_map(|attempt| attempt.attachments);
        self.paths.extend(attachments.filter_map(|attachment| match attachment.content {
            Content::Path(path) if !path.is_empty() => Some(path),
            _ => None,
        }));
    }
}

/// The files of a folder by their names.
struct Folder<'f>(BTreeMap<&'f str, &'f File>);

impl Files for Folder<'_> {
    fn sizes(&mut self) -> BTreeMap<String, u64> {
        self.0.iter().map(|(name, file)| ((*name).to_owned(), file.size)).collect()
    }

    fn open(&mut self, name: &str) -> Result<Box<dyn Read + '_>, Fault> {
        let file = self.0.get(name).ok_or(Fault::NotFound("file"))?;
        Ok(Box::new(Opened::open(&file.path).map_err(Fault::internal)?))
    }
}
