//! Conversions of files of other tools, as tests see them.

use std::{collections::BTreeMap, fs, path::PathBuf};

use serde_json::{Map, Value};

use super::*;
use crate::folder::{EXECUTIONS, Name, Place, Reader, TEST_CASES, TEST_SETS};

type Record = Map<String, Value>;

/// An export that files were converted to.
pub(super) struct Converted {
    pub(super) cases: Vec<Record>,
    /// The names of test sets with the identifiers of their test cases.
    pub(super) sets: BTreeMap<String, Vec<String>>,
    pub(super) executions: Vec<Record>,
    /// The results of each execution.
    pub(super) results: Vec<Vec<Record>>,
}

/// Converts files with these names and contents, whose format is recognized.
pub(super) fn convert_all(files: &[(&str, &str)]) -> Result<Converted> {
    let folder = tempfile::tempdir().unwrap();
    let from: Vec<PathBuf> = files
        .iter()
        .map(|(name, contents)| {
            let path = folder.path().join(name);
            fs::write(&path, contents).unwrap();
            path
        })
        .collect();
    let work = folder.path().join("work");
    // A conversion that was interrupted is replaced.
    fs::create_dir(&work).unwrap();
    fs::write(work.join("files.ndjson.part"), "{").unwrap();
    convert(&from, Format::Auto, &work)?;
    let (reader, _) = Reader::open(&work)?;
    let read = |file: &Place| -> Vec<Record> {
        reader.lines(file).unwrap().map(|line| line.unwrap().record).collect()
    };
    let names = |set: Record| {
        let cases = set["TestCases"].as_array().unwrap().iter();
        let cases = cases.map(|case| case.as_str().unwrap().to_owned()).collect();
        (set["Name"].as_str().unwrap().to_owned(), cases)
    };
    let executions = read(&EXECUTIONS);
    let results = |execution: &Record| {
        read(&Place::results(&Name::parse(execution["Id"].as_str().unwrap()).unwrap()))
    };
    Ok(Converted {
        cases: read(&TEST_CASES),
        sets: read(&TEST_SETS).into_iter().map(names).collect(),
        results: executions.iter().map(results).collect(),
        executions,
    })
}

/// Returns a field of records as texts.
pub(super) fn column(records: &[Record], field: &str) -> Vec<String> {
    let text = |record: &Record| match record.get(field) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    records.iter().map(text).collect()
}

#[test]
fn a_file_of_an_unknown_format_is_refused() {
    for text in ["", "{}", "hello", "<html/>", "a,b\n1,2\n"] {
        let error = convert_all(&[("file", text)]).err().unwrap().to_string();
        assert!(error.contains("not a file of a known format"), "{text}: {error}");
    }
}
