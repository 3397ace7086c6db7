//! Turns the events of other services into notifications.

use assay_auth::actor;
use assay_events::{EventType, ExecutionAction, Handler, Received, RecordKind, ReportsAction};
use assay_proto::{
    CustomerId, Fault, NotificationOrigin,
    events::{AuditRecorded, ExecutionChanged, RecordChanged, RecordsChanged, ReportsChanged},
    name_of,
    notification::Notification,
};
use assay_records::Action;
use assay_runtime::trace;
use sqlx::PgTransaction;

use crate::{
    LinkConfig, deletion,
    notification::{
        link::Links,
        publication::{self, Draft, Trace},
        rules::NO_STATE,
    },
};

/// The reactions of the service to events.
#[derive(Clone, Debug)]
pub(crate) struct Reactions {
    links: Links,
}

impl Handler for Reactions {
    async fn handle(&self, tx: &mut PgTransaction<'_>, event: &Received) -> Result<(), Fault> {
        let current = trace::to_map();
        // Without telemetry, the trace of the event is passed on.
        let trace = if current.is_empty() { event.trace() } else { current };
        publish(tx, event.customer(), self.drafts(event, &trace)?).await?;
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
            events.iter().map(|event| self.drafts(event, &event.trace())).collect();
        publish(tx, first.customer(), drafts?.into_iter().flatten().collect()).await?;
        Ok(true)
    }
}

impl Reactions {
    pub(crate) fn new(links: &LinkConfig) -> Self {
        Self { links: Links::new(&links.public, links.console) }
    }

    /// Returns the notifications of an event, in a trace.
    fn drafts(&self, event: &Received, trace: &Trace) -> Result<Vec<Draft>, Fault> {
        let Some(event_type) = event.event_type() else { return Ok(Vec::new()) };
        let drafts = notifications(event_type, event)?.into_iter().map(|mut notification| {
            notification.origin = NotificationOrigin::Assay.into();
            if notification.state.is_empty() {
                NO_STATE.clone_into(&mut notification.state);
            }
            self.links.set(&mut notification);
            notification.actor.get_or_insert_with(actor::program);
            (notification, trace.clone())
        });
        Ok(drafts.collect())
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
    drafts: Vec<Draft>,
) -> Result<(), Fault> {
    if drafts.is_empty() {
        return Ok(());
    }
    match publication::publish_all(tx, customer, drafts).await {
        Ok(_) | Err(Fault::NotFound(_)) => Ok(()),
        Err(fault) => Err(fault),
    }
}

/// Returns the notifications of an event. An event that is only for services has none. This service
/// consumes all events, so the compiler asks here about every new type.
fn notifications(event_type: EventType, event: &Received) -> Result<Vec<Notification>, Fault> {
    Ok(match event_type {
        EventType::Record(..)
        | EventType::Expired(_)
        | EventType::Expiring(_)
        | EventType::Alarm(_)
        | EventType::IncidentEnded => {
            vec![from_record(event.data()?)]
        }
        EventType::Records(..) => from_records(&event.data()?),
        EventType::Audited => vec![from_audit(event.data()?)],
        EventType::Execution(action) => of_execution(action, &event.data()?),
        EventType::Reports(ReportsAction::Finished | ReportsAction::Reviewed) => {
            from_reports(&event.data()?)
        }
        EventType::Reports(ReportsAction::Rebuilt)
        | EventType::SecretsSeen
        | EventType::RetentionSet
        | EventType::AppliancesSet => Vec::new(),
    })
}

fn from_record(change: RecordChanged) -> Notification {
    let id_of = |kind: RecordKind| {
        let of_source = (change.source == kind.name()).then(|| change.source_id.clone());
        of_source.or_else(|| change.target_id.clone().filter(|_| change.target == kind.name()))
    };
    let is_of_execution = change.source == RecordKind::Execution.name();
    Notification {
        execution_id: id_of(RecordKind::Execution),
        test_set_id: id_of(RecordKind::TestSet).filter(|_| is_of_execution),
        source: change.source,
        source_id: change.source_id,
        target: change.target,
        target_id: change.target_id,
        action: change.action,
        project_id: change.project_id,
        record_version: change.record_version,
        actor: change.actor,
        ..Notification::default()
    }
}

fn from_records(change: &RecordsChanged) -> Vec<Notification> {
    // The first version of a record is 1. The versions of changed records are not known.
    let is_new = change.action == Action::Created.name();
    let notification = change.records.iter().map(|record| Notification {
        source: change.source.clone(),
        source_id: record.id.clone(),
        target: change.target.clone(),
        target_id: Some(record.target_id.clone()),
        action: change.action.clone(),
        project_id: change.project_id.clone(),
        record_version: is_new.then(|| "1".to_owned()),
        actor: change.actor.clone(),
        ..Notification::default()
    });
    notification.collect()
}

/// The entry is listed with those of the audit log. Its details are only there.
fn from_audit(entry: AuditRecorded) -> Notification {
    Notification {
        source: "AuditEntry".to_owned(),
        source_id: entry.id,
        target: entry.target.unwrap_or_else(|| "Customer".to_owned()),
        target_id: entry.target_id,
        action: entry.action,
        actor: entry.actor,
        ..Notification::default()
    }
}

/// Backdated executions have none: nobody waits for them.
fn of_execution(action: ExecutionAction, change: &ExecutionChanged) -> Vec<Notification> {
    if change.is_past == Some(true) {
        return Vec::new();
    }
    match action {
        ExecutionAction::Requested => vec![of_test_set(change)],
        ExecutionAction::Completed | ExecutionAction::Canceled => {
            vec![of_test_set(change), about_execution(change, "Judged", verdict(change))]
        }
        ExecutionAction::Progressed => {
            let failing = change.first_failure.as_ref().map(|first| Notification {
                failed_test_cases: vec![first.clone()],
                owners: first.owners.clone(),
                ..about_execution(change, "Failing", name_of(change.status()))
            });
            Vec::from_iter(failing)
        }
        ExecutionAction::Waiting => {
            vec![about_execution(change, "Waiting", name_of(change.status()))]
        }
        ExecutionAction::Rebuilt => Vec::new(),
    }
}

fn verdict(change: &ExecutionChanged) -> String {
    change.verdict.map_or_else(String::new, |_| name_of(change.verdict()))
}

/// Returns a notification of what has happened to the test set.
fn of_test_set(change: &ExecutionChanged) -> Notification {
    Notification {
        source: "TestSet".to_owned(),
        source_id: change.test_set_id.clone(),
        target: "Execution".to_owned(),
        target_id: Some(change.execution_id.clone()),
        action: change.action.clone(),
        state: name_of(change.status()),
        ..execution(change)
    }
}

/// Returns a notification about the execution itself.
fn about_execution(change: &ExecutionChanged, action: &str, state: String) -> Notification {
    Notification {
        source: "Execution".to_owned(),
        source_id: change.execution_id.clone(),
        target: "TestSet".to_owned(),
        target_id: Some(change.test_set_id.clone()),
        action: action.to_owned(),
        state,
        ..execution(change)
    }
}

/// Returns what all notifications about an execution say about it.
fn execution(change: &ExecutionChanged) -> Notification {
    Notification {
        project_id: given(&change.project_id),
        test_set_id: given(&change.test_set_id),
        test_set_name: change.test_set_name.clone(),
        execution_id: given(&change.execution_id),
        result: Some(change.result),
        statistic: change.statistic.clone(),
        changes: change.changes,
        verdict: change.verdict,
        trend: change.trend,
        rules: change.rules.clone(),
        failed_test_cases: change.failed_test_cases.clone(),
        owners: change.owners.clone(),
        owner_trends: change.owner_trends.clone(),
        duration_in_sec: Some(change.run_duration_in_sec),
        branch: change.branch.clone(),
        commit: change.commit.clone(),
        build: change.build.clone(),
        ci_url: change.ci_url.clone(),
        record_version: Some(change.revision.to_string()),
        actor: change.actor.clone(),
        ..Notification::default()
    }
}

/// Returns an id, unless the event lacks it.
fn given(id: &str) -> Option<String> {
    Some(id.to_owned()).filter(|id| !id.is_empty())
}

fn from_reports(change: &ReportsChanged) -> Vec<Notification> {
    let reports = change.reports.iter().filter(|_| change.is_past != Some(true));
    let notification = reports.map(|report| Notification {
        source: "TestCase".to_owned(),
        source_id: report.test_case_id.clone(),
        target: "TestReport".to_owned(),
        target_id: Some(report.id.clone()),
        action: change.action.clone(),
        state: name_of(report.status()),
        project_id: given(&change.project_id),
        test_set_id: given(&change.test_set_id),
        test_set_name: change.test_set_name.clone(),
        execution_id: given(&change.execution_id),
        test_case_id: given(&report.test_case_id),
        test_case_identifier: report.test_case_identifier.clone(),
        test_plan_id: given(&report.test_plan_id),
        result: Some(report.result),
        change: Some(report.change),
        duration_in_sec: Some(report.average_duration_in_sec),
        branch: change.branch.clone(),
        commit: change.commit.clone(),
        build: change.build.clone(),
        ci_url: change.ci_url.clone(),
        owners: report.owners.clone(),
        record_version: Some(report.revision.to_string()),
        actor: change.actor.clone(),
        ..Notification::default()
    });
    notification.collect()
}
