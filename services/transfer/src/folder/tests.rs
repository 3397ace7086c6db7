//! Tests of exports on disk.

use std::fs;

use serde_json::{Value, json};

use super::{reader::lines, *};

fn write(folder: &mut Folder, path: &Place, records: &[Value]) {
    let mut part = folder.begin(path).unwrap();
    for record in records {
        part.line(record).unwrap();
    }
    folder.finish(part).unwrap();
}

#[test]
fn an_interrupted_export_is_continued_and_then_complete() {
    let root = tempfile::tempdir().unwrap();
    let mut folder = Folder::open(root.path()).unwrap();
    write(&mut folder, &PROJECT, &[json!({"Name": "shop"})]);
    let mut half = folder.begin(&TEST_CASES).unwrap();
    half.line(&json!({"Id": 1})).unwrap();
    half.write(b"{\"Id\": 2").unwrap();
    half.flush().unwrap();
    drop((half, folder));
    assert!(is_begun(root.path()) && !is_complete(root.path()));
    assert!(Reader::open(root.path()).is_err(), "the export is not complete");

    let mut folder = Folder::open(root.path()).unwrap();
    assert!(folder.has(&PROJECT) && !folder.has(&TEST_CASES));
    let (mut part, before) = folder.resume::<Value>(&TEST_CASES).unwrap();
    assert_eq!(before, [json!({"Id": 1})]);
    part.line(&json!({"Id": 2})).unwrap();
    folder.finish(part).unwrap();
    folder.complete("test").unwrap();

    let (reader, manifest) = Reader::open(root.path()).unwrap();
    assert_eq!(manifest.counts[TEST_CASES.as_str()], 2);
    let cases = reader.lines::<Value>(&TEST_CASES).unwrap();
    let cases: Vec<_> = cases.map(|line| line.unwrap().record).collect();
    assert_eq!(cases, [json!({"Id": 1}), json!({"Id": 2})]);
    assert!(Folder::open(root.path()).is_err(), "a complete export is not overwritten");
}

#[test]
fn a_changed_file_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let mut folder = Folder::open(root.path()).unwrap();
    write(&mut folder, &Place::results(&Name::parse("1").unwrap()), &[json!({"Result": "Passed"})]);
    folder.complete("test").unwrap();
    let file = root.path().join("executions/1/results.ndjson");
    fs::write(&file, "{\"Result\":\"Failed\"}\n").unwrap();

    let refused = Reader::open(root.path()).err().unwrap().to_string();

    assert!(refused.contains("results.ndjson differs"), "{refused}");
}

#[test]
fn a_broken_line_is_named() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("a.ndjson");
    fs::write(&file, "{\"Id\":1}\n\n{\"Id\":\n").unwrap();

    let mut lines = lines::<Value>(fs::File::open(&file).unwrap(), file.display().to_string());

    assert_eq!(lines.next().unwrap().unwrap().number, 1);
    let error = format!("{:#}", lines.next().unwrap().err().unwrap());
    assert!(error.contains("a.ndjson, line 3"), "{error}");
}
