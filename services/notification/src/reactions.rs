//! What other services tell becomes notifications.

use assay_events::{Handler, Received};
use assay_proto::{
    Fault,
    events::{ExecutionChanged, RecordChanged, ReportsChanged},
    name_of,
    notification::NotificationInput,
};
use sqlx::PgTransaction;

use crate::{
    deletion,
    notification::{rules::NO_STATE, store},
};

/// Makes notifications of events.
pub(crate) struct Reactions;

impl Handler for Reactions {
    async fn handle(&self, tx: &mut PgTransaction<'_>, event: &Received) -> Result<(), Fault> {
        let customer = event.customer();
        let notifications = notifications(event)?;
        if !notifications.is_empty() {
            match store::insert_all(tx, customer, notifications).await {
                // Nobody is told any more.
                Ok(_) | Err(Fault::NotFound(_)) => {}
                Err(fault) => return Err(fault),
            }
        }
        if [event.service(), event.noun(), event.action()] == ["identity", "customer", "deleted"] {
            deletion::delete(tx, customer).await?;
        }
        Ok(())
    }
}

/// What an event says to clients; nothing, if it is between services only.
fn notifications(event: &Received) -> Result<Vec<NotificationInput>, Fault> {
    Ok(match event.action() {
        "created" | "changed" | "archived" | "unarchived" | "deleted" => {
            vec![of_record(event.data()?)]
        }
        "requested" | "completed" | "canceled" => vec![of_execution(&event.data()?)],
        "finished" | "reviewed" => of_reports(&event.data()?),
        _ => Vec::new(),
    })
}

fn of_record(change: RecordChanged) -> NotificationInput {
    NotificationInput {
        source: change.source,
        source_id: change.source_id,
        target: change.target,
        target_id: change.target_id,
        action: change.action,
        state: Some(NO_STATE.to_owned()),
    }
}

fn of_execution(change: &ExecutionChanged) -> NotificationInput {
    NotificationInput {
        source: "TestSet".to_owned(),
        source_id: change.test_set_id.clone(),
        target: "Execution".to_owned(),
        target_id: Some(change.execution_id.clone()),
        action: change.action.clone(),
        state: Some(name_of(change.status())),
    }
}

fn of_reports(change: &ReportsChanged) -> Vec<NotificationInput> {
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
