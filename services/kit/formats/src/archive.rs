//! Reports that are several files, in a zip archive or a folder: Allure results and blob reports of
//! Playwright.

use assay_proto::Fault;

use crate::{
    Receiver,
    allure::{self, Files},
    playwright::blob,
};

/// Reads the report in a set of files. The attachments of the tests are names of files in it. Returns
/// notes on the report for its readers.
pub fn read(files: &mut dyn Files, receiver: impl Receiver) -> Result<Vec<String>, Fault> {
    if blob::is_report(files) { blob::read(files, receiver) } else { allure::read(files, receiver) }
}
