//! What makes a test case.

use assay_proto::{Fault, catalog::TestCaseInput};
use assay_records::Check;

/// A blank identifier is none.
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
