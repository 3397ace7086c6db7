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
    convert_in(folder.path(), &from)
}

/// Converts files and folders, in a folder beside them.
pub(super) fn convert_in(folder: &Path, from: &[PathBuf]) -> Result<Converted> {
    let work = folder.join("work");
    // A conversion that was interrupted is replaced.
    fs::create_dir(&work).unwrap();
    fs::write(work.join("files.ndjson.part"), "{").unwrap();
    convert(from, Format::Auto, &work)?;
    let (reader, _) = Reader::open(&work)?;
    let read = |file: &Place| -> Vec<Record> {
        reader.lines(file).unwrap().map(|line| line.unwrap().record).collect()
    };
    let names = |set: Record| {
        let cases = set.get("TestCases").and_then(Value::as_array).into_iter().flatten();
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
fn files_of_the_same_name_are_runs_of_their_own() {
    let run = |status: &str| format!("Case ID,Title,Status\nC1,Pay,{status}\n");
    let results = |result: &str| {
        format!("<results><testcase id=\"1\"><result>{result}</result></testcase></results>")
    };
    for (name, one, other) in
        [("run.csv", run("Passed"), run("Failed")), ("results.xml", results("p"), results("f"))]
    {
        let folder = tempfile::tempdir().unwrap();
        let write = |day: &str, contents: &str| {
            fs::create_dir_all(folder.path().join("runs").join(day)).unwrap();
            fs::write(folder.path().join("runs").join(day).join(name), contents).unwrap();
        };
        let keys = || {
            let converted = convert_in(folder.path(), &[folder.path().join("runs")]).unwrap();
            fs::remove_dir_all(folder.path().join("work")).unwrap();
            assert!(converted.results.iter().all(|results| results.len() == 1));
            column(&converted.executions, "Key")
        };
        write("monday", &one);
        write("tuesday", &one);
        let before = keys();
        assert_eq!((before.len(), &before), (2, &keys()), "{name}: they are the same each time");
        write("tuesday", &other);
        let after = keys();
        assert_eq!(after.iter().filter(|key| before.contains(key)).count(), 1, "{name}: {after:?}");
        assert_eq!(after.len(), 2);
    }
}

#[test]
fn a_file_of_an_unknown_format_is_refused() {
    for text in ["", "{}", "hello", "<html/>", "a,b\n1,2\n"] {
        let error = convert_all(&[("file", text)]).err().unwrap().to_string();
        assert!(error.contains("not a file of a known format"), "{text}: {error}");
    }
}
