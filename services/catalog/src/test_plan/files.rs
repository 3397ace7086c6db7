//! The files of a test plan.

use assay_proto::{CustomerId, Fault, ProjectId, TestPlanId, catalog::TestPlanInput};
use sqlx::PgTransaction;

use super::container::{CONTAINER, check};
use crate::file::reference::{Field, set};

/// Records the files that a plan refers to. Its container may also be the reference of an image.
pub(super) async fn resolve(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: TestPlanId,
    input: &TestPlanInput,
    before: Option<&TestPlanInput>,
) -> Result<(), Fault> {
    let container = Field::new(
        CONTAINER,
        input.automated_test_container_id.as_deref(),
        before.and_then(|it| it.automated_test_container_id.as_deref()),
    );
    check(&container)?;
    let fields = [
        Field::new(
            "InputFileId",
            input.input_file_id.as_deref(),
            before.and_then(|it| it.input_file_id.as_deref()),
        ),
        Field::new(
            "SupportingFilesId",
            input.supporting_files_id.as_deref(),
            before.and_then(|it| it.supporting_files_id.as_deref()),
        ),
        Field::new(
            "AutomationSupportingFilesId",
            input.automation_supporting_files_id.as_deref(),
            before.and_then(|it| it.automation_supporting_files_id.as_deref()),
        ),
        container,
    ];
    set(tx, customer, project, ("test plan", id.0), &fields).await?;
    Ok(())
}
