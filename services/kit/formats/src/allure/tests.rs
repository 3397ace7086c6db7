//! Tests of archives and of the sets of files that attempts and fixtures are in.

use std::{
    collections::BTreeMap,
    io::{Cursor, Write},
};

use assay_proto::TestResult;
use zip::{ZipWriter, write::SimpleFileOptions};

use super::*;

/// Files in memory.
struct Memory(BTreeMap<String, Vec<u8>>);

impl Files for Memory {
    fn sizes(&mut self) -> BTreeMap<String, u64> {
        self.0.iter().map(|(name, contents)| (name.clone(), contents.len() as u64)).collect()
    }

    fn open(&mut self, name: &str) -> Result<Box<dyn Read + '_>, Fault> {
        Ok(Box::new(&self.0[name][..]))
    }
}

fn folder(name: &str) -> Memory {
    let folder = format!("{}/tests/files/allure/{name}", env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let name = |entry: &std::fs::DirEntry| entry.file_name().into_string().unwrap();
    Memory(entries.map(|entry| (name(&entry), std::fs::read(entry.path()).unwrap())).collect())
}

fn archive(files: &Memory) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, contents) in &files.0 {
        zip.start_file(format!("allure-results/{name}"), SimpleFileOptions::default()).unwrap();
        zip.write_all(contents).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn tests(files: &mut dyn Files) -> Result<Vec<Test>, Fault> {
    let mut tests = Vec::new();
    read(files, |test| {
        tests.push(test);
        Ok(())
    })?;
    Ok(tests)
}

#[test]
fn archives_have_the_tests_and_attachments_of_their_files() {
    for name in ["pytest", "playwright"] {
        let mut files = folder(name);
        let mut archive = Archive::open(Cursor::new(archive(&files))).unwrap();
        assert_eq!(tests(&mut archive).unwrap(), tests(&mut files).unwrap(), "{name}");
        let mut contents = Vec::new();
        let shot = archive.sizes().into_keys().find(|name| name.contains(".png")).unwrap();
        archive.open(&shot).unwrap().read_to_end(&mut contents).unwrap();
        assert_eq!(contents, files.0[&shot]);
    }
}

#[test]
fn attempts_have_steps_fixtures_and_attachments() {
    let tests = tests(&mut folder("pytest")).unwrap();
    let named = |name: &str| tests.iter().find(|test| test.name == name).unwrap();
    let greeted = named("test_user_is_greeted");
    assert_eq!(greeted.class, "test_shop.TestLogin");
    assert_eq!(greeted.suites, ["test_shop", "TestLogin"]);
    assert_eq!(greeted.links[0].target, "https://example.org/SHOP-7");
    assert!(greeted.labels.iter().any(|label| label.name == "as_id" && label.value == "4711"));
    let attempt = &greeted.attempts[0];
    let steps: Vec<_> = attempt.steps.iter().map(|step| (step.depth, &*step.name)).collect();
    assert!(steps.windows(2).any(|pair| pair == [(0, "Open the page"), (1, "Look at it")]));
    let files: Vec<&str> = attempt.attachments.iter().map(|file| &*file.name).collect();
    assert_eq!(files, ["stdout", "shot"]);
    let browser = named("test_browser");
    let broken = browser.attempts[1].steps.iter().find(|step| step.name == "Before: browser");
    assert_eq!(broken.unwrap().result, TestResult::Error);
    let flaky = named("test_flaky");
    assert!(flaky.is_flaky() && flaky.attempts[0].problems[0].message.contains("assert (0 % 2)"));
}

#[test]
fn archives_that_grow_too_much_are_refused() {
    let bomb = format!("{{\"name\": \"{}\"}}", " ".repeat(8 << 20));
    let files = BTreeMap::from([("a-result.json".to_owned(), bomb.into_bytes())]);
    let mut archive = Archive::open(Cursor::new(archive(&Memory(files)))).unwrap();
    let fault = tests(&mut archive).unwrap_err().to_string();
    assert!(fault.contains("grows too much") && fault.contains("a-result.json"), "{fault}");
    let broken = Archive::open(Cursor::new(b"PK\x03\x04 and nothing else".to_vec()));
    assert!(broken.err().unwrap().to_string().contains("zip archive"));
}

#[test]
fn a_failure_among_attempts_of_the_same_moment_counts() {
    let result = |status: &str| {
        let result = format!(r#"{{"historyId":"1","name":"adds","start":7,"status":"{status}"}}"#);
        result.into_bytes()
    };
    for statuses in [["failed", "passed"], ["passed", "failed"], ["passed", "broken"]] {
        let names = ["a-result.json", "b-result.json"].map(str::to_owned);
        let files = names.into_iter().zip(statuses.map(result)).collect();
        let tests = tests(&mut Memory(files)).unwrap();
        assert_eq!(tests.len(), 1);
        assert_ne!(tests[0].result(), TestResult::Passed, "{statuses:?}");
    }
}

#[test]
fn a_broken_file_is_named_and_costs_no_other() {
    let files = BTreeMap::from([
        ("a-result.json".to_owned(), b"{\"name\": \"adds\", \"status\": \"passed\"}".to_vec()),
        ("b-result.json".to_owned(), b"{\"name\": ".to_vec()),
    ]);
    let tests = tests(&mut Memory(files)).unwrap();
    assert_eq!(tests[0].result(), TestResult::Passed);
    assert_eq!(tests[1].result(), TestResult::Error);
    assert!(tests[1].attempts[0].problems[0].message.contains("b-result.json, line 1"));
}

#[test]
fn a_single_file_is_refused_with_a_remedy() {
    for file in [&b"PK\x03\x04"[..], br#"{"uuid": "1", "historyId": "2", "name": "x"}"#] {
        let fault = crate::read(file, |_| Ok(())).unwrap_err().to_string();
        assert!(fault.contains("Allure results") && fault.contains("send"), "{fault}");
    }
}
