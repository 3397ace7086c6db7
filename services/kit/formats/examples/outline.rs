//! Prints what Assay reads in reports: `cargo run -p assay-formats --example outline report.xml`. With
//! `--json`, it prints a line with the counts of each report.

use std::{
    collections::BTreeMap,
    env,
    fs::{self, File},
    io::{BufReader, Read},
    path::PathBuf,
};

use assay_formats::{
    Collected, Test,
    allure::{ARCHIVE, Archive, Files},
    archive, read,
};
use assay_proto::{Fault, name_of};
use serde_json::json;

struct Folder(PathBuf);

impl Files for Folder {
    fn sizes(&mut self) -> BTreeMap<String, u64> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let size = |entry: &fs::DirEntry| entry.metadata().map_or(0, |file| file.len());
        entries
            .map(|entry| (entry.file_name().to_string_lossy().into_owned(), size(&entry)))
            .collect()
    }

    fn open(&mut self, name: &str) -> Result<Box<dyn Read + '_>, Fault> {
        Ok(Box::new(File::open(self.0.join(name)).map_err(Fault::internal)?))
    }
}

fn outline(path: &PathBuf) -> Result<(Vec<Test>, Vec<String>), Fault> {
    let mut tests = Collected::default();
    let file = || File::open(path).map_err(Fault::internal);
    let notes = if path.is_dir() {
        archive::read(&mut Folder(path.clone()), &mut tests)?
    } else if fs::read(path).map_err(Fault::internal)?.starts_with(ARCHIVE) {
        archive::read(&mut Archive::open(file()?)?, &mut tests)?
    } else {
        read(BufReader::new(file()?), &mut tests)?
    };
    Ok((tests.into_tests(), notes))
}

/// Returns the number of tests by result, of flaky tests, and of attempts.
fn counts(tests: &[Test]) -> BTreeMap<String, usize> {
    let names = ["Passed", "Failed", "Error", "Aborted", "Canceled", "NotExecuted"];
    let with = |name: &str| tests.iter().filter(|test| name_of(test.result()) == name).count();
    let results = names.map(|name| (name.to_owned(), with(name)));
    let flaky = tests.iter().filter(|test| test.is_flaky()).count();
    let attempts = tests.iter().map(|test| test.attempts.len()).sum();
    let others = [("Flaky", flaky), ("Attempts", attempts), ("Tests", tests.len())];
    results.into_iter().chain(others.map(|(name, count)| (name.to_owned(), count))).collect()
}

fn print(test: &Test) {
    let attempts: Vec<String> =
        test.attempts.iter().map(|attempt| name_of(attempt.result)).collect();
    let start = test.start.map(|start| start.0.to_rfc3339()).unwrap_or_default();
    let (attempts, variant) = (attempts.join(">"), test.variant());
    println!("  {attempts:10} {} [{variant}] {:.9} s {start}", test.identifier(), test.seconds);
    let Some(last) = test.attempts.last() else { return };
    for problem in &last.problems {
        println!("             {:?}", problem.message.lines().next().unwrap_or_default());
    }
    if !last.reason.is_empty() {
        println!("             {:?}", last.reason);
    }
}

fn main() {
    let (options, paths): (Vec<String>, Vec<String>) =
        env::args().skip(1).partition(|argument| argument == "--json");
    for path in paths.into_iter().map(PathBuf::from) {
        let read = outline(&path);
        if !options.is_empty() {
            let read = match &read {
                Ok((tests, notes)) => json!({ "counts": counts(tests), "notes": notes }),
                Err(fault) => json!({ "error": fault.to_string() }),
            };
            println!("{}", json!({ "path": path, "read": read }));
            continue;
        }
        println!("{}", path.display());
        match read {
            Ok((tests, notes)) => {
                tests.iter().for_each(print);
                println!("  {} tests: {:?}", tests.len(), counts(&tests));
                for note in notes {
                    println!("  note: {note}");
                }
            }
            Err(fault) => println!("  {fault}"),
        }
    }
}
