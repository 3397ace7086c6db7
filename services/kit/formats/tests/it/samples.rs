//! Samples in `tests/files`. The README of each folder has the format as its title and a table with
//! the expected counts.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{BufReader, Read},
    path::{Path, PathBuf},
};

use assay_formats::{Collected, FORMATS, Test, allure::Files, archive, read};
use assay_proto::{Fault, TestResult};

/// A sample with its expected counts, in the order of the columns.
pub(crate) struct Sample {
    pub(crate) path: PathBuf,
    pub(crate) format: String,
    counts: Vec<usize>,
}

/// Returns the samples of all formats.
pub(crate) fn samples() -> Vec<Sample> {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files");
    let mut folders: Vec<PathBuf> =
        fs::read_dir(files).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders.iter().flat_map(|folder| samples_in(folder)).collect()
}

fn samples_in(folder: &Path) -> Vec<Sample> {
    let readme = fs::read_to_string(folder.join("README.md")).unwrap();
    let format = readme.lines().next().unwrap().trim_start_matches("# ");
    let rows = readme.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let counts: Option<Vec<usize>> = cells[1..].iter().map(|cell| cell.parse().ok()).collect();
        let path = folder.join(cells[0].trim_matches('`'));
        counts.filter(|counts| counts.len() == 8).map(|counts| (path, counts))
    });
    rows.map(|(path, counts)| Sample { path, format: format.to_owned(), counts }).collect()
}

/// A folder with files that belong together.
struct Folder(PathBuf);

impl Files for Folder {
    fn sizes(&mut self) -> BTreeMap<String, u64> {
        let entries = fs::read_dir(&self.0).unwrap().map(Result::unwrap);
        let size = |entry: &fs::DirEntry| entry.metadata().unwrap().len();
        entries.map(|entry| (entry.file_name().into_string().unwrap(), size(&entry))).collect()
    }

    fn open(&mut self, name: &str) -> Result<Box<dyn Read + '_>, Fault> {
        Ok(Box::new(File::open(self.0.join(name)).map_err(Fault::internal)?))
    }
}

/// Returns the tests of a report.
pub(crate) fn parsed(report: &(impl AsRef<[u8]> + ?Sized)) -> Vec<Test> {
    let mut tests = Collected::default();
    let report = report.as_ref();
    read(report, &mut tests)
        .unwrap_or_else(|fault| panic!("{fault}: {}", String::from_utf8_lossy(report)));
    tests.into_tests()
}

/// Reads a sample, which is a file or a folder of files.
pub(crate) fn tests(path: &Path) -> Vec<Test> {
    let mut tests = Collected::default();
    let read = if path.is_dir() {
        archive::read(&mut Folder(path.to_owned()), &mut tests)
    } else {
        read(BufReader::new(File::open(path).unwrap()), &mut tests)
    };
    read.unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
    tests.into_tests()
}

fn counts(tests: &[Test]) -> Vec<usize> {
    let with = |result| tests.iter().filter(|test| test.result() == result).count();
    vec![
        tests.len(),
        with(TestResult::Passed),
        with(TestResult::Failed),
        with(TestResult::Error),
        with(TestResult::Canceled),
        with(TestResult::Aborted),
        tests.iter().map(|test| test.attempts.len()).sum(),
        tests.iter().filter(|test| test.is_flaky()).count(),
    ]
}

#[test]
fn every_sample_has_the_counts_of_its_readme() {
    for sample in samples() {
        let tests = tests(&sample.path);
        let lines: Vec<String> = tests
            .iter()
            .map(|test| format!("{:?} {} [{}]", test.result(), test.identifier(), test.variant()))
            .collect();
        assert_eq!(counts(&tests), sample.counts, "{}: {lines:#?}", sample.path.display());
    }
}

#[test]
fn every_format_and_file_has_a_row() {
    let samples = samples();
    let formats: BTreeSet<&str> = samples.iter().map(|sample| sample.format.as_str()).collect();
    let names: BTreeSet<&str> = FORMATS.iter().map(|format| format.name()).collect();
    assert_eq!(formats, names);
    for sample in &samples {
        for entry in fs::read_dir(sample.path.parent().unwrap()).unwrap() {
            let path = entry.unwrap().path();
            let is_listed = samples.iter().any(|sample| sample.path == path);
            assert!(is_listed || path.ends_with("README.md"), "{} has no row", path.display());
        }
    }
}

#[test]
fn steps_of_every_sample_are_valid() {
    for sample in samples() {
        for test in tests(&sample.path) {
            let steps = test.steps();
            assert!(!steps.is_empty(), "{}: {}", sample.path.display(), test.identifier());
            assert!(steps.iter().zip(1..).all(|(step, number)| step.step_nr == number));
        }
    }
}
