//! What makes a project.

use assay_proto::{Fault, catalog::ProjectInput};

use crate::check::Check;

pub(super) fn valid(input: ProjectInput) -> Result<ProjectInput, Fault> {
    let mut check = Check::default();
    check.texts(&input);
    check.name("Name", &input.name);
    check.done().map(|()| input)
}
