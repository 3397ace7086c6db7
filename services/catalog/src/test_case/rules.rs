//! The rules for test cases.

use assay_proto::{Fault, catalog::TestCaseInput};
use assay_records::Check;

/// Returns a new test case, which is active.
pub(super) fn new(input: TestCaseInput) -> TestCaseInput {
    TestCaseInput { archived: false, ..input }
}

/// Checks a test case. A blank identifier counts as absent.
pub(crate) fn valid(mut input: TestCaseInput) -> Result<TestCaseInput, Fault> {
    let mut check = Check::default();
    check.texts(&input);
    check.name("Name", &input.name);
    input.identifier = input.identifier.filter(|identifier| !identifier.trim().is_empty());
    if let Some(identifier) = &input.identifier {
        check.name("Identifier", identifier);
    }
    check.done().map(|()| input)
}
