//! Reports that are several files, in a zip archive or a folder: Allure results and blob reports of
//! Playwright.

use assay_proto::Fault;

use crate::{
    Receiver,
    allure::{self, Files},
    playwright::blob,
};

/// Reads the report in a set of files. The attachments of the tests are names of files in it. Returns
/// notes on the report for its readers. Refuses other files, which nobody would miss otherwise.
pub fn read(files: &mut dyn Files, receiver: impl Receiver) -> Result<Vec<String>, Fault> {
    if blob::is_report(files) {
        return blob::read(files, receiver);
    }
    if !allure::is_report(files) {
        let reason = "the archive has neither Allure results nor a blob report of Playwright: send the \
            reports in it as files of a form";
        return Err(Fault::Refused { code: "unknown_format", reason: reason.to_owned() });
    }
    allure::read(files, receiver)
}
