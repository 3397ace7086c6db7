//! Derives incidents from a completed execution. To repeat it changes nothing: an execution that an incident
//! affects begins no other one, and an incident ends once.
//!
//! An outage begins an incident, or belongs to one of that time: with its cause, of its series, or of the
//! last half hour. Without an outage, an execution belongs to the incidents of that time that have its causes,
//! and each other cause of new failures is sought in the executions of the same half hour: if most test sets of
//! the project have it, at least three, it begins an incident. An execution that was requested before the end
//! of an incident is of its time, also if it completes later.
//!
//! The first execution of an affected series (test set, environment and branch) that does not belong to an incident
//! ends it, if it was requested after those of this series that do. An incident that has affected no execution for a
//! week has ended: a later failure with the same cause begins another one.

use assay_events::{RecordKind, publish};
use assay_judge::is_outage;
use assay_ledger::{event, incident::lock_open};
use assay_proto::{CustomerId, ExecutionId, Fault, IncidentId};
use assay_records::Action;
use sqlx::PgTransaction;

use super::{
    evidence::{self, Completed},
    store::{self, NewIncident},
};

/// Derives incidents from a completed execution, unless it was deleted.
pub(super) async fn derive(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<(), Fault> {
    let Some(execution) = evidence::completed(tx, customer, id).await? else { return Ok(()) };
    if execution.executed == 0 {
        return Ok(());
    }
    lock_open(tx, customer, execution.project_id).await?;
    if is_outage(execution.executed, execution.failed) {
        outage(tx, customer, &execution).await?;
    } else {
        causes(tx, customer, &execution).await?;
    }
    for ended in store::end(tx, customer, &execution).await? {
        publish(tx, &event::incident_ended(customer, execution.project_id, ended)?).await?;
    }
    Ok(())
}

async fn outage(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: &Completed,
) -> Result<(), Fault> {
    if store::is_affected(tx, customer, execution.id).await? {
        return Ok(());
    }
    let cause = evidence::main_cause(tx, customer, execution.id).await?;
    let incident = match store::of_outage(tx, customer, execution, cause.as_ref()).await? {
        Some(incident) => incident,
        None => begin(tx, customer, execution, NewIncident::Outage(cause.as_ref())).await?,
    };
    store::add(tx, customer, incident, &[execution.id]).await
}

async fn causes(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: &Completed,
) -> Result<(), Fault> {
    for incident in store::of_causes(tx, customer, execution).await? {
        store::add(tx, customer, incident, &[execution.id]).await?;
    }
    for (cause, executions) in evidence::widespread(tx, customer, execution).await? {
        let incident = begin(tx, customer, execution, NewIncident::Cause(&cause)).await?;
        store::add(tx, customer, incident, &executions).await?;
    }
    Ok(())
}

async fn begin(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: &Completed,
    new: NewIncident<'_>,
) -> Result<IncidentId, Fault> {
    let incident = store::insert(tx, customer, execution, new).await?;
    let record = (RecordKind::Incident, incident);
    publish(tx, &event::record(customer, execution.project_id, record, Action::Created)?).await?;
    Ok(incident)
}
