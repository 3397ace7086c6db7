//! The rules for environments.

use assay_proto::{Fault, ProjectId, SubjectId, catalog::EnvironmentInput};
use assay_records::Check;

pub(super) const CONTAINED_SUBJECT: &str = "ContainedSubject";

/// Returns a new environment with its defaults: it is active, and its files are those of the project.
pub(super) fn new(project: ProjectId, mut input: EnvironmentInput) -> EnvironmentInput {
    input.archived = false;
    if input.file_project_id.is_empty() {
        input.file_project_id = project.to_string();
    }
    input
}

pub(super) fn valid(input: EnvironmentInput) -> Result<EnvironmentInput, Fault> {
    let mut check = Check::default();
    check.texts(&input);
    check.name("Name", &input.name);
    check.size("ImageFileSize", input.image_file_size);
    check.labels("Labels", &input.labels);
    check.done().map(|()| input)
}

/// Returns the subject that the image contains.
pub(super) fn contained_subject(input: &EnvironmentInput) -> Result<Option<SubjectId>, Fault> {
    SubjectId::from_field_if_any(CONTAINED_SUBJECT, input.contained_subject.as_deref())
}
