//! The files of a subject.

use assay_proto::{
    CustomerId, Fault, ProjectId, SubjectId,
    catalog::{Subject, SubjectInput},
};
use sqlx::PgTransaction;

use crate::file::reference::{Field, set};

/// Records the files that a subject refers to. Their names and sizes follow from them.
pub(super) async fn resolve(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: SubjectId,
    input: &mut SubjectInput,
    before: Option<&Subject>,
) -> Result<(), Fault> {
    let fields = [
        Field::new(
            "SoftwareFileId",
            input.software_file_id.as_deref(),
            before.and_then(|it| it.software_file_id.as_deref()),
        ),
        Field::new(
            "InstallationFileId",
            input.installation_file_id.as_deref(),
            before.and_then(|it| it.installation_file_id.as_deref()),
        ),
        Field::new(
            "InstructionFileId",
            input.instruction_file_id.as_deref(),
            before.and_then(|it| it.instruction_file_id.as_deref()),
        ),
        Field::new(
            "FrameworkFileId",
            input.framework_file_id.as_deref(),
            before.and_then(|it| it.framework_file_id.as_deref()),
        ),
    ];
    let files = set(tx, customer, project, ("subject", id.0), &fields).await?;
    let is_cleared = fields.map(|field| field.is_cleared());
    let names = [
        &mut input.software_file_name,
        &mut input.installation_file_name,
        &mut input.instruction_file_name,
    ];
    let ids = ["SoftwareFileId", "InstallationFileId", "InstructionFileId"];
    for ((name, field), is_cleared) in names.into_iter().zip(ids).zip(is_cleared) {
        match files.get(field) {
            Some(file) => *name = Some(file.name.clone()),
            None if is_cleared => *name = None,
            None => {}
        }
    }
    match files.get("SoftwareFileId") {
        Some(file) => input.software_file_size = file.size,
        None if is_cleared[0] => input.software_file_size = 0,
        None => {}
    }
    Ok(())
}
