//! Allure results: a set of files, with one for each attempt of a test.
//!
//! The results of a test have the same `historyId`. They are found in a first pass over the files,
//! which keeps only their names and ids, and read in a second one.

mod archive;
mod fixtures;
mod outcome;
mod step;

use std::{
    collections::{BTreeMap, HashMap},
    io::{BufRead, BufReader, Read},
};

use assay_proto::Fault;
use serde::de::DeserializeOwned;

pub use self::{
    archive::{Archive, directory_size},
    outcome::identifier,
};
use self::{
    fixtures::Fixtures,
    outcome::{Brief, Outcome},
};
use crate::{
    Format, Head, Receiver, Sink, Test,
    decoded::{Decoded, Replaced, encoding_of},
    fault::broken,
    json::{self, Lenient, allowance},
    sink::Passed,
};

/// Maximum number of files: a result for each test of the largest report.
pub(crate) const MOST_FILES: usize = 100_000;

/// Maximum size of a file with a result, in bytes.
const LARGEST: u64 = 16 << 20;

/// Bytes at the start of a zip archive.
pub const ARCHIVE: &[u8] = b"PK\x03\x04";

/// Ends of the names of files that are read.
const PARTS: [&str; 3] = ["-result.json", "-container.json", "-globals.json"];

/// Files beside them that describe the run.
const DESCRIPTIONS: [&str; 4] =
    ["categories.json", "environment.properties", "environment.xml", "executor.json"];

/// Files of the history, which are copied from an earlier report so that the next one shows trends.
const HISTORY: [&str; 5] = [
    "categories-trend.json",
    "duration-trend.json",
    "history-trend.json",
    "history.json",
    "retry-trend.json",
];

/// Ends of the names of files that other tools write reports into.
const REPORTS: [&str; 6] = [".xml", ".trx", ".tap", ".json", ".jsonl", ".ndjson"];

/// Maximum number of names of such files in the note on them.
const MOST_NAMES: usize = 5;

/// Files that belong together, such as those of a folder or of an archive.
pub trait Files {
    /// Returns the sizes of the files in bytes, by their names without folders.
    fn sizes(&mut self) -> BTreeMap<String, u64>;

    /// Opens the file with this name.
    fn open(&mut self, name: &str) -> Result<Box<dyn Read + '_>, Fault>;
}

/// The format of Allure results.
pub struct Allure;

impl Format for Allure {
    fn name(&self) -> &'static str {
        "Allure results"
    }

    fn recognizes(&self, head: &Head) -> bool {
        head.starts_with(ARCHIVE)
            || head.object().is_some_and(|json| {
                json.has(1, "uuid") && (json.has(1, "historyId") || json.has(1, "children"))
            })
    }

    /// Refuses a single file: attempts and attachments are in others. [`read`] reads all of them.
    fn read(&self, _: &mut dyn BufRead, _: Sink<'_>) -> Result<(), Fault> {
        let reason = "the file was recognized as Allure results, which are several files and cannot \
            be read from one: send a zip archive of their folder, or a form with all of them";
        Err(Fault::Refused { code: "several_files", reason: reason.to_owned() })
    }
}

/// Returns whether a file has this name because it has the result of an attempt.
pub fn is_result(name: &str) -> bool {
    name.ends_with("-result.json")
}

/// Returns whether a set of files can be Allure results, also those of a run without tests.
pub(crate) fn is_report(files: &mut dyn Files) -> bool {
    let sizes = files.sizes();
    sizes.keys().any(|name| is_part(name)) || sizes.keys().all(|name| is_beside(name))
}

fn is_part(name: &str) -> bool {
    PARTS.iter().any(|end| name.ends_with(end))
}

fn is_beside(name: &str) -> bool {
    DESCRIPTIONS.contains(&name) || HISTORY.contains(&name) || name.contains("-attachment")
}

/// Returns a note on files that seem to be reports of other tools, which are not read.
fn note_on_others(names: &[String]) -> Option<String> {
    let is_other = |name: &&String| {
        !is_part(name) && !is_beside(name) && REPORTS.iter().any(|end| name.ends_with(end))
    };
    let others: Vec<&str> = names.iter().filter(is_other).map(String::as_str).collect();
    let shown = others.iter().take(MOST_NAMES).copied().collect::<Vec<_>>().join(", ");
    let more = others.len().saturating_sub(MOST_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!others.is_empty()).then(|| {
        format!("Files beside Allure results were not read, send them in another request: {shown}{more}.")
    })
}

/// Reads the results in a set of files. The attachments of the tests are names of files in it. Returns
/// notes on the report for its readers. A file that is broken costs only its own contents.
pub fn read(files: &mut dyn Files, receiver: impl Receiver) -> Result<Vec<String>, Fault> {
    let mut passed = Passed::to(receiver);
    read_all(files, &mut passed)?;
    passed.finish()
}

fn read_all(files: &mut dyn Files, sink: Sink<'_>) -> Result<(), Fault> {
    let names: Vec<String> = files.sizes().into_keys().collect();
    if names.len() > MOST_FILES {
        let reason = format!("Allure results have at most {MOST_FILES} files");
        return Err(Fault::Refused { code: "too_large", reason });
    }
    if let Some(note) = note_on_others(&names) {
        sink.note(note);
    }
    let (mut tests, mut fixtures) = (Attempts::default(), Fixtures::default());
    for (index, name) in names.iter().enumerate() {
        if is_result(name) {
            if let Some(brief) = parse::<Brief>(files, name, sink)? {
                tests.add(brief, index);
            }
        } else if name.ends_with("-container.json") {
            if let Some(container) = parse(files, name, sink)? {
                fixtures.add(container);
            }
        } else if name.ends_with("-globals.json") {
            fixtures.add_globals(parse(files, name, sink)?.unwrap_or_default());
        }
    }
    for attempts in tests.sorted() {
        let mut test = Test::default();
        for index in attempts {
            if let Some(outcome) = parse::<Outcome>(files, &names[index], sink)? {
                outcome.add_to(&mut test, &mut fixtures);
            }
        }
        if !test.attempts.is_empty() {
            sink.add(test)?;
        }
    }
    fixtures.finish(sink)
}

/// Reads a file. One that is broken is lost; one that is hostile refuses the report.
fn parse<T: DeserializeOwned>(
    files: &mut dyn Files,
    name: &str,
    sink: Sink<'_>,
) -> Result<Option<T>, Fault> {
    allowance::renew();
    let mut file = BufReader::new(files.open(name)?.take(LARGEST));
    let head = file.fill_buf().map_err(|error| unreadable(name, &error))?;
    let encoding = encoding_of(head);
    let text = Decoded::new(file, encoding, Replaced::default());
    let mut json = serde_json::Deserializer::from_reader(Lenient::new(text, sink.replaced()));
    match T::deserialize(&mut json) {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_io() => Err(unreadable(name, &error)),
        Err(error) => {
            let place = format!("{name}, line {}, column {}", error.line(), error.column());
            sink.lose(&place, &json::message(&error));
            Ok(None)
        }
    }
}

fn unreadable(name: &str, error: &dyn std::fmt::Display) -> Fault {
    broken(Allure.name(), &format!("in {name}"), format_args!("a file is unreadable: {error}"))
}

/// The attempts of each test, by its history.
#[derive(Default)]
struct Attempts(HashMap<String, Vec<Placed>>);

/// The order of an attempt among those of its test, and the index of its file.
type Placed = ((i64, bool), usize);

impl Attempts {
    fn add(&mut self, brief: Brief, index: usize) {
        let order = brief.order();
        self.0.entry(brief.history(index)).or_default().push((order, index));
    }

    /// Returns the indexes of the files of each test, with those of its attempts in their order.
    fn sorted(self) -> impl Iterator<Item = impl Iterator<Item = usize>> {
        let mut tests: Vec<Vec<Placed>> = self.0.into_values().collect();
        for attempts in &mut tests {
            attempts.sort_unstable();
        }
        tests.sort_unstable();
        tests.into_iter().map(|attempts| attempts.into_iter().map(|(_, index)| index))
    }
}

#[cfg(test)]
mod tests;
