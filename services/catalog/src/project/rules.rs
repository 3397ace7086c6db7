//! The rules for projects.

use assay_proto::{Fault, catalog::ProjectInput};
use assay_records::Check;

/// Maximum number of days that results are kept, if not forever: a century.
const LONGEST_RETENTION: i32 = 36_525;

/// Returns a new project, which is active.
pub(super) fn new(input: ProjectInput) -> ProjectInput {
    ProjectInput { archived: false, ..input }
}

pub(super) fn valid(input: ProjectInput) -> Result<ProjectInput, Fault> {
    let mut check = Check::default();
    check.texts(&input);
    check.name("Name", &input.name);
    if input.retention_in_days.is_some_and(|days| !(1..=LONGEST_RETENTION).contains(&days)) {
        check.refuse("RetentionInDays", format!("must be 1 to {LONGEST_RETENTION}, or null"));
    }
    check.done().map(|()| input)
}
