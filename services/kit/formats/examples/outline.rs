//! Prints what Assay reads in reports: `cargo run -p assay-formats --example outline report.xml`.

use std::{
    collections::BTreeMap,
    env,
    fs::{self, File},
    io::{BufReader, Read},
    path::PathBuf,
};

use assay_formats::{
    Collected, Test,
    allure::{self, ARCHIVE, Archive, Files},
    read,
};
use assay_proto::{Fault, name_of};

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
        allure::read(&mut Folder(path.clone()), &mut tests)?
    } else if fs::read(path).map_err(Fault::internal)?.starts_with(ARCHIVE) {
        allure::read(&mut Archive::open(file()?)?, &mut tests)?
    } else {
        read(BufReader::new(file()?), &mut tests)?
    };
    Ok((tests.into_tests(), notes))
}

fn main() {
    for path in env::args().skip(1).map(PathBuf::from) {
        println!("{}", path.display());
        let (tests, notes) = match outline(&path) {
            Ok(read) => read,
            Err(fault) => {
                println!("  {fault}");
                continue;
            }
        };
        let mut counts = BTreeMap::<String, usize>::new();
        for test in &tests {
            let attempts: Vec<String> =
                test.attempts.iter().map(|attempt| name_of(attempt.result)).collect();
            let start = test.start.map(|start| start.0.to_rfc3339()).unwrap_or_default();
            let variant = test.variant();
            println!(
                "  {:10} {} [{variant}] {:.9} s {start}",
                attempts.join(">"),
                test.identifier(),
                test.seconds
            );
            let last = test.attempts.last();
            for problem in last.into_iter().flat_map(|attempt| &attempt.problems) {
                println!("             {:?}", problem.message.lines().next().unwrap_or_default());
            }
            if let Some(reason) = last.map(|last| &last.reason).filter(|text| !text.is_empty()) {
                println!("             {reason:?}");
            }
            *counts.entry(name_of(test.result())).or_default() += 1;
            *counts.entry("flaky".to_owned()).or_default() += usize::from(test.is_flaky());
            *counts.entry("attempts".to_owned()).or_default() += test.attempts.len();
        }
        println!("  {} tests: {counts:?}", tests.len());
        notes.iter().for_each(|note| println!("  note: {note}"));
    }
}
