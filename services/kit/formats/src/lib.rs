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
pub mod archive;
mod classification;
mod ctrf;
mod cucumber;
mod decoded;
mod durations;
mod fault;
mod filtered;
mod go_test;
mod head;
mod held;
mod identity;
mod jest;
mod json;
mod junit;
mod limits;
mod lines;
mod mocha;
mod model;
mod names;
mod nunit;
mod nunit2;
mod open_test_reporting;
mod playwright;
mod pytest_json;
pub mod reportportal;
mod robot;
mod sink;
mod span;
mod steps;
mod tap;
mod testng;
mod texts;
mod times;
mod trx;
mod values;
mod xml;
mod xunit;

use std::io::{BufRead, Cursor, Read};

use assay_proto::Fault;

pub use self::{
    allure::Allure,
    classification::TAG,
    ctrf::{Ctrf, CtrfWriter},
    cucumber::{CucumberJson, CucumberMessages},
    durations::{parse_seconds, plausible_seconds},
    fault::problem,
    go_test::GoTest,
    head::Head,
    identity::{IDENTITY_VERSION, Identities, Place},
    jest::{Jest, Vitest},
    json::{lenient, parse_lenient, parse_lenient_from},
    junit::Junit,
    mocha::{Mocha, Mochawesome},
    model::{Attachment, Attempt, Content, Link, Nature, Problem, Property, Retry, Step, Test},
    nunit::Nunit,
    nunit2::Nunit2,
    open_test_reporting::OpenTestReporting,
    playwright::{Playwright, blob::PlaywrightBlob},
    pytest_json::PytestJson,
    robot::{Robot, RobotJson},
    sink::{Amendment, Collected, MOST_OUTPUTS, Receiver, Sink},
    tap::Tap,
    testng::TestNg,
    trx::Trx,
    xunit::Xunit,
};
use self::{
    decoded::Decoded,
    sink::{Output, Passed},
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
    &PlaywrightBlob,
    &Jest,
    &Vitest,
    &Mocha,
    &Mochawesome,
    &PytestJson,
    &CucumberJson,
    &CucumberMessages,
    &Allure,
    &GoTest,
    &Robot,
    &RobotJson,
    &Nunit,
    &Nunit2,
    &OpenTestReporting,
    &Xunit,
    &Trx,
    &TestNg,
    &Tap,
];

/// A format of reports.
pub trait Format: Sync {
    /// Returns the name of the format for messages.
    fn name(&self) -> &'static str;

    /// Returns whether a file that starts like this has the format.
    fn recognizes(&self, head: &Head) -> bool;

    /// Reads a file of the format, as UTF-8.
    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault>;
}

/// Reads a file of any format and encoding. Returns notes on it for its readers.
pub fn read(file: impl BufRead, receiver: impl Receiver) -> Result<Vec<String>, Fault> {
    read_as(file, receiver, recognize)
}

/// Reads a file of the format that `choose` returns for its beginning.
pub fn read_as(
    mut file: impl BufRead,
    receiver: impl Receiver,
    choose: impl FnOnce(&Head) -> Result<&'static dyn Format, Fault>,
) -> Result<Vec<String>, Fault> {
    let mut passed = Passed::to(receiver);
    let head = Head::read(&mut file)?;
    let format = choose(&head)?;
    let encoding = head.encoding();
    let file = Cursor::new(head.into_bytes()).chain(file);
    let mut text = Decoded::new(file, encoding, passed.replaced());
    format.read(&mut text, &mut passed)?;
    passed.finish()
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
