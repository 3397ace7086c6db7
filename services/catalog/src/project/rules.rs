//! What makes a project.

use assay_proto::{Fault, catalog::ProjectInput};
use assay_records::Check;

pub(super) fn valid(input: ProjectInput) -> Result<ProjectInput, Fault> {
    let mut check = Check::default();
    check.texts(&input);
    check.name("Name", &input.name);
    check.done().map(|()| input)
}
