//! States of test cases: which are muted or skipped until a date. A state is about a test case, and a known
//! failure about a cause.

pub mod rules;
pub mod store;

use assay_events::{RecordKind, publish};
use assay_proto::{CustomerId, Fault, MonitorId, ProjectId, TestCaseId, catalog::TestCaseName};
use assay_records::Action;
use sqlx::PgTransaction;

use self::{rules::NewState, store::Author};
use crate::event;

/// Mutes or skips a test case, and publishes it.
pub async fn set(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    (case, name): (TestCaseId, &TestCaseName),
    state: &NewState,
    author: Author<'_>,
) -> Result<(), Fault> {
    let (version, is_new) = store::set(tx, customer, project, (case, name), state, author).await?;
    if is_new {
        store::check_number(tx, customer, project).await?;
    }
    let action = if is_new { Action::Created } else { Action::Changed };
    publish(tx, &event::state_set(customer, project, case, action, version)?).await
}

/// Enables a test case that is muted or skipped, and publishes it.
pub async fn enable(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    case: TestCaseId,
) -> Result<(), Fault> {
    remove(tx, customer, project, case, None).await
}

/// Enables a test case, and publishes it, if this monitor has muted or skipped it.
pub async fn lift(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    case: TestCaseId,
    monitor: MonitorId,
) -> Result<(), Fault> {
    remove(tx, customer, project, case, Some(monitor)).await
}

async fn remove(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    case: TestCaseId,
    monitor: Option<MonitorId>,
) -> Result<(), Fault> {
    if !store::delete(tx, customer, project, case, monitor).await? {
        return Ok(());
    }
    let record = (RecordKind::TestCaseState, case);
    publish(tx, &event::record(customer, project, record, Action::Deleted)?).await
}
