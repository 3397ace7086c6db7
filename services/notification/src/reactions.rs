//! Turns the events of other services into notifications.

use assay_events::{EventType, ExecutionAction, Handler, Received, RecordKind, ReportsAction};
use assay_proto::{
    Fault,
    events::{ExecutionChanged, RecordChanged, ReportsChanged},
    name_of,
    notification::NotificationInput,
};
use assay_records::Action;
use sqlx::PgTransaction;

use crate::{
    deletion,
    notification::{publication, rules::NO_STATE},
};

pub(crate) struct Reactions;

impl Handler for Reactions {
    async fn handle(&self, tx: &mut PgTransaction<'_>, event: &Received) -> Result<(), Fault> {
        let Some(event_type) = event.event_type() else { return Ok(()) };
        let customer = event.customer();
        let notifications = notifications(event_type, event)?;
        if !notifications.is_empty() {
            match publication::publish_all(tx, customer, &notifications).await {
                // The customer is deleted.
                Ok(_) | Err(Fault::NotFound(_)) => {}
                Err(fault) => return Err(fault),
            }
        }
        if event_type == EventType::Record(RecordKind::Customer, Action::Deleted) {
            deletion::delete(tx, customer).await?;
        }
        Ok(())
    }
}

/// Returns the notifications of an event. An event that is only for services has none. This service
/// consumes all events, so the compiler asks here about every new type.
fn notifications(event_type: EventType, event: &Received) -> Result<Vec<NotificationInput>, Fault> {
    Ok(match event_type {
        EventType::Record(..) => vec![from_record(event.data()?)],
        EventType::Execution(
            ExecutionAction::Requested | ExecutionAction::Completed | ExecutionAction::Canceled,
        ) => vec![from_execution(&event.data()?)],
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

fn from_execution(change: &ExecutionChanged) -> NotificationInput {
    NotificationInput {
        source: "TestSet".to_owned(),
        source_id: change.test_set_id.clone(),
        target: "Execution".to_owned(),
        target_id: Some(change.execution_id.clone()),
        action: change.action.clone(),
        state: Some(name_of(change.status())),
    }
}

fn from_reports(change: &ReportsChanged) -> Vec<NotificationInput> {
    let reports = change.reports.iter();
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
