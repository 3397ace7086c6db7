//! The projects to which engines restrict the work that they do.

use assay_proto::{Fault, ProjectId};
use assay_records::Check;

/// Maximum number of projects of an engine.
const MOST_PROJECTS: usize = 50;

/// Checks the ids of projects in a field. Returns each of them once, in order.
pub(crate) fn check(check: &mut Check, field: &str, ids: &[String]) -> Vec<ProjectId> {
    if ids.len() > MOST_PROJECTS {
        check.refuse(field, format!("must have at most {MOST_PROJECTS} entries"));
    }
    let mut projects = Vec::new();
    for (index, id) in ids.iter().enumerate().take(MOST_PROJECTS) {
        match ProjectId::from_path(id) {
            Ok(id) => projects.push(id),
            Err(_) => {
                check.refuse(format!("{field}/{index}"), "must be the id of a project, a UUID");
            }
        }
    }
    projects.sort_unstable();
    projects.dedup();
    projects
}

/// Returns the projects of a request that was checked.
pub(crate) fn checked(ids: &[String]) -> Result<Vec<ProjectId>, Fault> {
    ids.iter().map(|id| ProjectId::from_record(id)).collect()
}
