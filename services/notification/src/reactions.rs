//! Turns the events of other services into notifications.

use assay_events::{EventType, ExecutionAction, Handler, Received, RecordKind, ReportsAction};
use assay_proto::{
    CustomerId, Fault, NotificationOrigin,
    events::{ExecutionChanged, RecordChanged, RecordsChanged, ReportsChanged},
    name_of,
    notification::NotificationInput,
};
use assay_records::Action;
use assay_runtime::trace;
use sqlx::PgTransaction;

use crate::{
    deletion,
    notification::{
        publication::{self, Draft, Trace},
        rules::NO_STATE,
    },
};

pub(crate) struct Reactions;

impl Handler for Reactions {
    async fn handle(&self, tx: &mut PgTransaction<'_>, event: &Received) -> Result<(), Fault> {
        let current = trace::to_map();
        // Without telemetry, the trace of the event is passed on.
        let trace = if current.is_empty() { event.trace() } else { current };
        publish(tx, event.customer(), &drafts(event, &trace)?).await?;
        if is_deletion(event) {
            deletion::delete(tx, event.customer()).await?;
        }
        Ok(())
    }

    async fn handle_all(
        &self,
        tx: &mut PgTransaction<'_>,
        events: &[&Received],
    ) -> Result<bool, Fault> {
        let [first, ..] = events else { return Ok(true) };
        if events.iter().any(|event| is_deletion(event)) {
            return Ok(false);
        }
        let drafts: Result<Vec<_>, Fault> =
            events.iter().map(|event| drafts(event, &event.trace())).collect();
        publish(tx, first.customer(), &drafts?.concat()).await?;
        Ok(true)
    }
}

/// Whether an event is the deletion of its customer.
fn is_deletion(event: &Received) -> bool {
    event.event_type() == Some(EventType::Record(RecordKind::Customer, Action::Deleted))
}

/// Publishes notifications, unless the customer is deleted.
async fn publish(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    drafts: &[Draft],
) -> Result<(), Fault> {
    if drafts.is_empty() {
        return Ok(());
    }
    match publication::publish_all(tx, customer, NotificationOrigin::Assay, drafts).await {
        Ok(_) | Err(Fault::NotFound(_)) => Ok(()),
        Err(fault) => Err(fault),
    }
}

/// Returns the notifications of an event, in a trace.
fn drafts(event: &Received, trace: &Trace) -> Result<Vec<Draft>, Fault> {
    let Some(event_type) = event.event_type() else { return Ok(Vec::new()) };
    let notifications = notifications(event_type, event)?.into_iter();
    Ok(notifications.map(|input| (input, trace.clone())).collect())
}

/// Returns the notifications of an event. An event that is only for services has none. This service
/// consumes all events, so the compiler asks here about every new type.
fn notifications(event_type: EventType, event: &Received) -> Result<Vec<NotificationInput>, Fault> {
    Ok(match event_type {
        EventType::Record(..)
        | EventType::Expired(_)
        | EventType::Alarm(_)
        | EventType::IncidentEnded => {
            vec![from_record(event.data()?)]
        }
        EventType::Records(..) => from_records(&event.data()?),
        EventType::Execution(
            ExecutionAction::Requested | ExecutionAction::Completed | ExecutionAction::Canceled,
        ) => from_execution(&event.data()?),
        EventType::Reports(ReportsAction::Finished | ReportsAction::Reviewed) => {
            from_reports(&event.data()?)
        }
        EventType::Execution(ExecutionAction::Progressed | ExecutionAction::Rebuilt)
        | EventType::Reports(ReportsAction::Rebuilt)
        | EventType::SecretsSeen
        | EventType::RetentionSet => Vec::new(),
    })
}

fn from_record(change: RecordChanged) -> NotificationInput {
    NotificationInput {
        source: change.source,
        source_id: change.source_id,
        target: change.target,
        target_id: change.target_id,
        action: change.action,
        state: Some(NO_STATE.to_owned()),
    }
}

fn from_records(change: &RecordsChanged) -> Vec<NotificationInput> {
    let notification = change.records.iter().map(|record| NotificationInput {
        source: change.source.clone(),
        source_id: record.id.clone(),
        target: change.target.clone(),
        target_id: Some(record.target_id.clone()),
        action: change.action.clone(),
        state: Some(NO_STATE.to_owned()),
    });
    notification.collect()
}

/// Backdated executions have none: nobody waits for them.
fn from_execution(change: &ExecutionChanged) -> Vec<NotificationInput> {
    let notification = NotificationInput {
        source: "TestSet".to_owned(),
        source_id: change.test_set_id.clone(),
        target: "Execution".to_owned(),
        target_id: Some(change.execution_id.clone()),
        action: change.action.clone(),
        state: Some(name_of(change.status())),
    };
    Vec::from_iter((change.is_past != Some(true)).then_some(notification))
}

fn from_reports(change: &ReportsChanged) -> Vec<NotificationInput> {
    let reports = change.reports.iter().filter(|_| change.is_past != Some(true));
    let notification = reports.map(|report| NotificationInput {
        source: "TestCase".to_owned(),
        source_id: report.test_case_id.clone(),
        target: "TestReport".to_owned(),
        target_id: Some(report.id.clone()),
        action: change.action.clone(),
        state: Some(name_of(report.status())),
    });
    notification.collect()
}
