//! Files that are broken or made to do harm. The number of cases is that of proptest, so that the
//! time is bounded; `PROPTEST_CASES` raises it.

use std::{
    cell::Cell,
    collections::BTreeMap,
    fs,
    io::{Cursor, Read},
};

use assay_formats::{
    FORMATS, Test,
    allure::{Archive, Files},
    archive, read, read_as,
};
use assay_proto::Fault;
use proptest::{collection::vec, prelude::*, sample::Index};

use crate::samples::samples;

/// A closure that receives tests.
type Sink<'s> = dyn FnMut(Test) -> Result<(), Fault> + 's;

/// Maximum size of what is kept of a test, in bytes: texts of all attempts, steps and attachments.
const LARGEST: usize = 64 << 20;

/// Returns the approximate size of a test, in bytes.
fn size(test: &Test) -> usize {
    format!("{test:?}").len()
}

/// Checks that a read ends with tests of bounded size, or with a fault of the caller.
fn check(read: impl FnOnce(&mut Sink<'_>) -> Result<Vec<String>, Fault>) {
    let tests = Cell::new(0);
    let result = read(&mut |test: Test| {
        assert!(!test.attempts.is_empty() && test.attempts.len() <= 20);
        assert!(test.identifier().chars().count() <= 255);
        assert!(size(&test) < LARGEST);
        assert!(test.steps().iter().all(|step| {
            let parts = [&step.test_input, &step.actual_result];
            parts.iter().all(|text| text.as_ref().is_none_or(|text| !text.contains('\0')))
        }));
        tests.set(tests.get() + 1);
        Ok(())
    });
    if let Err(fault) = result {
        assert!(matches!(fault, Fault::Malformed(_) | Fault::Refused { .. }), "{fault:?}");
    }
}

/// Reads a file with every reader, whatever it is recognized as.
fn check_all(file: &[u8]) {
    check(|sink| read(file, sink));
    for format in FORMATS {
        check(|sink| read_as(file, sink, |_| Ok(*format)));
    }
}

/// The files of samples that are one file.
fn files() -> Vec<Vec<u8>> {
    let paths = samples().into_iter().map(|sample| sample.path).filter(|path| path.is_file());
    paths.map(|path| fs::read(path).unwrap()).collect()
}

/// A change of a file.
#[derive(Clone, Debug)]
enum Change {
    Remove(Index, usize),
    Repeat(Index, usize, usize),
    Replace(Index, u8),
    Insert(Index, Vec<u8>),
    Cut(Index),
}

impl Change {
    fn apply(&self, file: &mut Vec<u8>) {
        if file.is_empty() {
            return;
        }
        let range = |index: &Index, size: usize| {
            let start = index.index(file.len());
            start..(start + size).min(file.len())
        };
        match self {
            Self::Remove(index, size) => _ = file.drain(range(index, *size)),
            Self::Repeat(index, size, count) => {
                let range = range(index, *size);
                let part = file[range.clone()].repeat(*count);
                file.splice(range, part);
            }
            Self::Replace(index, byte) => {
                let index = index.index(file.len());
                file[index] = *byte;
            }
            Self::Insert(index, bytes) => {
                let index = index.index(file.len());
                file.splice(index..index, bytes.iter().copied());
            }
            Self::Cut(index) => file.truncate(index.index(file.len())),
        }
    }
}

fn change() -> impl Strategy<Value = Change> {
    let mark = prop::sample::select(vec![
        "<",
        ">",
        "\"",
        "'",
        "&",
        "&#0;",
        "]]>",
        "<![CDATA[",
        "<!--",
        "<!DOCTYPE x [",
        "{",
        "}",
        "[",
        "]",
        "\\",
        "\\ud800",
        "null",
        "-1e999",
        "\0",
        "\n",
        "\u{feff}",
        "ok 1 ",
        "    ",
        "\u{1b}[",
    ]);
    prop_oneof![
        (any::<Index>(), 1..200_usize).prop_map(|(index, size)| Change::Remove(index, size)),
        (any::<Index>(), 1..200_usize, 2..50_usize)
            .prop_map(|(index, size, count)| Change::Repeat(index, size, count)),
        (any::<Index>(), any::<u8>()).prop_map(|(index, byte)| Change::Replace(index, byte)),
        (any::<Index>(), mark).prop_map(|(index, mark)| Change::Insert(index, mark.into())),
        any::<Index>().prop_map(Change::Cut),
    ]
}

/// A blob report of Playwright without attachments.
struct Events(Vec<u8>);

impl Files for Events {
    fn sizes(&mut self) -> BTreeMap<String, u64> {
        BTreeMap::from([("report.jsonl".to_owned(), self.0.len() as u64)])
    }

    fn open(&mut self, _: &str) -> Result<Box<dyn Read + '_>, Fault> {
        Ok(Box::new(&self.0[..]))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_time: 10_000, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_are_read_or_refused(file in vec(any::<u8>(), 0..2000)) {
        check_all(&file);
    }

    #[test]
    fn arbitrary_text_after_a_regular_start_is_read_or_refused(
        start in prop::sample::select(vec![
            "<testsuites>", "<robot>", "<test-run>", "<test-results>",
            "<events xmlns='opentest4j.org/reporting'>", "<execution xmlns='opentest4j.org/reporting'>", "<assemblies>", "<TestRun>", "<testng-results>",
            "{\"reportFormat\": \"CTRF\", ", "{\"config\": {\"rootDir\": 1}, ", "[{\"elements\": ",
            "{\"numTotalTestSuites\": 1, \"numTotalTests\": 1, \"testResults\": ",
            "{\"stats\": {\"suites\": 1}, \"tests\": ", "{\"stats\": {}, \"results\": ",
            "{\"created\": 1, \"exitcode\": 1, \"tests\": ",
            "{\"generator\": \"Rebot\", \"rpa\": false, ",
            "{\"meta\": {\"protocolVersion\": 1}}\n", "{\"Action\": \"run\", \"Package\": \"", "TAP version 14\n",
        ]),
        rest in ".{0,500}",
    ) {
        check_all(format!("{start}{rest}").as_bytes());
    }

    #[test]
    fn changed_samples_are_read_or_refused(sample in any::<Index>(), changes in vec(change(), 1..8)) {
        let files = files();
        let mut file = files[sample.index(files.len())].clone();
        for change in &changes {
            change.apply(&mut file);
        }
        check(|sink| read(&file[..], sink));
    }

    #[test]
    fn changed_events_of_a_blob_are_read_or_refused(changes in vec(change(), 1..8)) {
        let mut file = include_bytes!("../files/playwright-blob/max-failures/report.jsonl").to_vec();
        for change in &changes {
            change.apply(&mut file);
        }
        check(|sink| archive::read(&mut Events(file), sink));
    }

    #[test]
    fn changed_archives_are_read_or_refused(is_blob in any::<bool>(), changes in vec(change(), 1..4)) {
        let mut bytes = if is_blob {
            include_bytes!("../archives/playwright.zip").to_vec()
        } else {
            include_bytes!("../archives/pytest.zip").to_vec()
        };
        for change in &changes {
            change.apply(&mut bytes);
        }
        if let Ok(mut archive) = Archive::open(Cursor::new(bytes)) {
            assert!(archive.sizes().len() < 1000);
            check(|sink| archive::read(&mut archive, sink));
        }
    }
}

#[test]
fn excessive_files_are_refused_or_shortened() {
    let deep = |open: &str| open.repeat(200_000);
    let long = "x".repeat(3 << 20);
    for file in [
        deep("<testsuite>"),
        format!("<robot><suite>{}", deep("<kw>")),
        format!("{{\"reportFormat\": \"CTRF\", \"results\": {}", deep("[")),
        format!("{{\"reportFormat\": \"CTRF\", \"results\": {}", deep("{\"a\":")),
        format!("{{\"config\": {{\"rootDir\": 1}}, {}", deep("\"suites\": [{\"title\": \"a\", ")),
        format!(
            "{{\"generator\": \"\", \"rpa\": false, \"suite\": {}",
            deep("{\"body\": [{\"x\": ")
        ),
        format!("{{\"stats\": {{}}, \"results\": {}", deep("[{\"suites\": ")),
        format!("[{{\"elements\": [{{\"name\": \"{long}\", \"id\": {}", deep("[")),
        format!("{{\"Action\": \"run\", \"Package\": \"p\", \"Test\": \"{long}{long}\"}}"),
        format!("<testsuite name=\"{long}\" {}>", deep("a=\"\" ")),
        format!("<testsuite>&{long};</testsuite>"),
        format!("<!DOCTYPE {long}><testsuite/>"),
        format!("1..1\n{}ok 1 {long}", deep("    ")),
    ] {
        check(|sink| read(file.as_bytes(), sink));
    }
}
