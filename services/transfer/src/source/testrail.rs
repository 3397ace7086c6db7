//! TestRail: XML and CSV exports of test cases, and CSV exports of runs.
//!
//! A run is a CSV file with the column Status. Its name is that of the file, or in the column Run.

mod csv;
mod xml;

use std::{collections::HashMap, path::PathBuf};

use anyhow::Result;

use super::{Source, model::Verdict, store::Store};

/// Reads the exports of TestRail.
#[derive(Default)]
pub(super) struct TestRail {
    /// Identifiers of test cases that differ from their number, `C1`.
    identifiers: HashMap<String, String>,
}

/// Whether a file is an export of TestRail.
pub(super) fn is_testrail(head: &str) -> bool {
    let is_xml = head.starts_with('<') && (head.contains("<suite>") || head.contains("<sections>"));
    is_xml || csv::columns(head).is_some()
}

impl Source for TestRail {
    fn name(&self) -> &'static str {
        "testrail"
    }

    fn read(&mut self, files: &[PathBuf], store: &mut Store) -> Result<()> {
        // Runs refer to test cases.
        let (mut cases, mut runs) = (Vec::new(), Vec::new());
        for file in files {
            let head = super::head::head(file)?;
            match csv::columns(&head) {
                Some(columns) if columns.is_run() => runs.push(file),
                Some(_) => cases.push((file, false)),
                None => cases.push((file, true)),
            }
        }
        for (file, is_xml) in cases {
            if is_xml {
                self.read_xml(file, store)?;
            } else {
                self.read_cases(file, store)?;
            }
        }
        runs.into_iter().try_for_each(|file| self.read_run(file, store))
    }
}

impl TestRail {
    /// Returns the identifier of a test case: that of its automated test, or else its number.
    fn identifier(&mut self, number: &str, automation: &str) -> String {
        if automation.trim().is_empty() {
            return number.to_owned();
        }
        self.identifiers.insert(number.to_owned(), automation.trim().to_owned());
        automation.trim().to_owned()
    }

    fn known(&self, number: &str) -> String {
        self.identifiers.get(number).map_or(number, String::as_str).to_owned()
    }
}

/// Returns the result that a status of TestRail stands for.
fn verdict(status: &str) -> Verdict {
    match status.trim().to_lowercase().as_str() {
        "" | "untested" => Verdict::None,
        "passed" => Verdict::Passed,
        "failed" => Verdict::Failed,
        "blocked" => Verdict::Aborted,
        "retest" | "skipped" => Verdict::Canceled,
        _ => Verdict::Unknown(status.trim().to_owned()),
    }
}

#[cfg(test)]
mod tests;
