//! The rules for projects.

use assay_proto::{Fault, catalog::ProjectInput};
use assay_records::Check;

/// Maximum number of days that results are kept, if not forever: a century.
const LONGEST_RETENTION: i32 = 36_525;

/// Maximum length of the name of a branch, in characters.
const LONGEST_BRANCH: usize = 250;

/// Default branch of a project whose creator names none.
const DEFAULT_BRANCH: &str = "main";

/// Returns a new project with its defaults, which is active.
pub(super) fn new(input: ProjectInput) -> ProjectInput {
    ProjectInput {
        archived: false,
        default_branch: input.default_branch.or_else(|| Some(DEFAULT_BRANCH.to_owned())),
        ..input
    }
}

pub(super) fn valid(input: ProjectInput) -> Result<ProjectInput, Fault> {
    let mut check = Check::default();
    check.texts(&input);
    check.name("Name", &input.name);
    if input.retention_in_days.is_some_and(|days| !(1..=LONGEST_RETENTION).contains(&days)) {
        check.refuse("RetentionInDays", format!("must be 1 to {LONGEST_RETENTION}, or null"));
    }
    match &input.default_branch {
        Some(branch) => check.line("DefaultBranch", branch, 1..=LONGEST_BRANCH),
        None => check.refuse("DefaultBranch", "must not be null"),
    }
    check.done().map(|()| input)
}
