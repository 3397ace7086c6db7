//! The archive of executions.

use assay_auth::actor;
use assay_events::{Event, EventType, RecordKind, publish};
use assay_ledger::execution::store;
use assay_proto::{
    CustomerId, ExecutionId, Fault, ProjectId, events::RecordChanged, execution::ExecutionInput,
};
use assay_records::{Action, Change};
use sqlx::PgTransaction;

/// Archives or unarchives an execution and publishes the change.
pub(crate) async fn update(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: impl Into<Option<ProjectId>>,
    id: ExecutionId,
    change: Change<ExecutionInput>,
) -> Result<(), Fault> {
    let current = store::lock(tx, customer, project, id).await?.execution;
    let input = change.apply("execution", &current, &current.data_version)?;
    store::update(tx, customer, id, &input).await?;
    let action = Action::of_change(current.archived, input.archived);
    let version: i64 = current.data_version.parse().map_err(Fault::internal)?;
    let event_type = EventType::Record(RecordKind::Execution, action);
    let changed = RecordChanged {
        source: RecordKind::Execution.name().to_owned(),
        source_id: current.id,
        target: "TestSet".to_owned(),
        target_id: Some(current.test_set_id),
        action: action.name().to_owned(),
        project_id: Some(current.project_id),
        record_version: Some((version + 1).to_string()),
        actor: Some(actor::current()),
    };
    publish(tx, &Event::new(customer, id, event_type, &changed)?).await
}
