//! The image of an environment, which may be a file of another project.

use assay_proto::{
    CustomerId, EnvironmentId, Fault, ProjectId,
    catalog::{Environment, EnvironmentInput},
};
use sqlx::PgTransaction;

use crate::{
    file::reference::{Field, delete, is_id, set},
    project::store as projects,
};

const FILE_PROJECT: &str = "FileProjectId";

/// Records the file that is the image of an environment of a locked project. Its size follows from it. A text
/// that is not a UUID names a project of another system, and its files are there.
pub(super) async fn resolve(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: EnvironmentId,
    input: &mut EnvironmentInput,
    before: Option<&Environment>,
) -> Result<(), Fault> {
    let has_moved = before.is_none_or(|it| it.file_project_id != input.file_project_id);
    let image = Field::new(
        "ImageFileId",
        input.image_file_id.as_deref(),
        before.and_then(|it| it.image_file_id.as_deref()),
    );
    let is_elsewhere = !is_id(&input.file_project_id);
    if (has_moved || is_elsewhere) && image.before.is_some_and(is_id) {
        delete(tx, customer, id.0).await?;
    }
    if is_elsewhere {
        return Ok(());
    }
    let of_files = ProjectId::from_field(FILE_PROJECT, &input.file_project_id)?;
    if of_files != project && (has_moved || image.has_changed()) {
        let locked = projects::lock_if_exists(tx, customer, of_files).await?;
        let missing = || Fault::invalid(FILE_PROJECT, "no such project");
        locked.then_some(()).ok_or_else(missing)?;
    }
    let is_cleared = image.is_cleared();
    let field = if has_moved { Field { before: None, ..image } } else { image };
    let files = set(tx, customer, of_files, ("environment", id.0), &[field]).await?;
    match files.get("ImageFileId") {
        Some(file) => input.image_file_size = file.size,
        None if is_cleared => input.image_file_size = 0,
        None => {}
    }
    Ok(())
}
