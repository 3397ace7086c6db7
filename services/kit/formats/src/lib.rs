//! Reads the reports of test tools.
//!
//! Each format has a reader behind one trait, [`Format`]. [`read`] recognizes the format of a file by
//! its contents and passes each test to a sink as soon as it is complete, so that the memory needed
//! does not depend on the size of the file. Files that are not reports, are broken or are hostile
//! are refused, with the format that they were recognized as, the place and the remedy.
//!
//! A new format is a file with its reader, an entry in [`FORMATS`] and a folder of samples in
//! `tests/files`, whose README states the expected counts.

pub mod allure;
mod ctrf;
mod cucumber;
mod fault;
mod go_test;
mod head;
mod held;
mod json;
mod junit;
mod limits;
mod lines;
mod model;
mod nunit;
mod playwright;
pub mod reportportal;
mod robot;
mod steps;
mod tap;
mod testng;
mod texts;
mod trx;
mod values;
mod xml;
mod xunit;

use std::io::{BufRead, Cursor, Read};

use assay_proto::Fault;

pub use self::{
    allure::Allure,
    ctrf::{Ctrf, CtrfWriter},
    cucumber::{CucumberJson, CucumberMessages},
    go_test::GoTest,
    head::Head,
    junit::Junit,
    model::{Attachment, Attempt, Content, Link, Nature, Problem, Property, Step, Test},
    nunit::Nunit,
    playwright::Playwright,
    robot::Robot,
    tap::Tap,
    testng::TestNg,
    trx::Trx,
    xunit::Xunit,
};

/// Type of an error that marks an aborted test, in reports that Assay exports.
pub const ABORTED: &str = "assay.Aborted";

/// Heading of the output of a test in the text of its last step.
pub const OUTPUT: &str = "Output:\n";

/// All formats.
pub static FORMATS: &[&dyn Format] = &[
    &Junit,
    &Ctrf,
    &Playwright,
    &CucumberJson,
    &CucumberMessages,
    &Allure,
    &GoTest,
    &Tap,
    &Robot,
    &Nunit,
    &Xunit,
    &Trx,
    &TestNg,
];

/// Receives the tests of a report, each as soon as it is complete. The reader stops if it fails.
pub type Sink<'s> = &'s mut dyn FnMut(Test) -> Result<(), Fault>;

/// A format of reports.
pub trait Format: Sync {
    /// Returns the name of the format for messages.
    fn name(&self) -> &'static str;

    /// Returns whether a file that starts like this has the format.
    fn recognizes(&self, head: &Head) -> bool;

    /// Reads a file of the format.
    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault>;
}

/// Reads a file of any format.
pub fn read(
    mut file: impl BufRead,
    mut sink: impl FnMut(Test) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let head = Head::read(&mut file)?;
    let format = recognize(&head)?;
    format.read(&mut Cursor::new(head.into_bytes()).chain(file), &mut sink)
}

/// Returns the format of a file that starts like this.
pub fn recognize(head: &Head) -> Result<&'static dyn Format, Fault> {
    if head.is_empty() {
        return Err(Fault::Malformed("the file is empty: send a report with tests".to_owned()));
    }
    FORMATS.iter().copied().find(|format| format.recognizes(head)).ok_or_else(|| {
        let names: Vec<&str> = FORMATS.iter().map(|format| format.name()).collect();
        let root = match head.xml_root() {
            "" => String::new(),
            root => format!(" (XML with the root {root})"),
        };
        let reason = format!("the file has an unknown format{root}: send {}", names.join(", "));
        Fault::Refused { code: "unknown_format", reason }
    })
}
