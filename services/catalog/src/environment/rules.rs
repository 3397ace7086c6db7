//! What makes an environment.

use assay_proto::{Fault, ProjectId, SubjectId, catalog::EnvironmentInput};
use assay_records::Check;

/// A new environment. Its files are the project's own, unless it says otherwise.
pub(super) fn new(project: ProjectId, mut input: EnvironmentInput) -> EnvironmentInput {
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
    check.done().map(|()| input)
}

/// The subject that the image already contains.
pub(super) fn contained_subject(input: &EnvironmentInput) -> Result<Option<SubjectId>, Fault> {
    SubjectId::from_field_if_any("ContainedSubject", input.contained_subject.as_deref())
}
