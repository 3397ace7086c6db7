//! The events of records of a project that are about failures: they mute them, join them, or look after them.

use std::fmt::Display;

use assay_auth::actor;
use assay_events::{AlarmChange, Event, EventType, RecordKind};
use assay_proto::{
    CustomerId, ExecutionId, Fault, IncidentId, MonitorId, ProjectId, TestCaseId,
    events::RecordChanged,
};
use assay_records::Action;

/// Returns the event of an action on a record of a project.
pub fn record(
    customer: CustomerId,
    project: ProjectId,
    (kind, id): (RecordKind, impl Display),
    action: Action,
) -> Result<Event, Fault> {
    let event_type = EventType::Record(kind, action);
    event(customer, project, (kind, id), (RecordKind::Project, project), event_type)
}

/// Returns the event of an action on a record of an execution.
pub fn record_of_execution(
    customer: CustomerId,
    (project, execution): (ProjectId, ExecutionId),
    (kind, id): (RecordKind, impl Display),
    action: Action,
) -> Result<Event, Fault> {
    let event_type = EventType::Record(kind, action);
    event(customer, project, (kind, id), (RecordKind::Execution, execution), event_type)
}

/// Returns the event that a record of a project ends soon.
pub fn expiring(
    customer: CustomerId,
    project: ProjectId,
    (kind, id): (RecordKind, impl Display),
) -> Result<Event, Fault> {
    let target = (RecordKind::Project, project);
    event(customer, project, (kind, id), target, EventType::Expiring(kind))
}

/// Returns the event that a record of a project has expired.
pub fn expired(
    customer: CustomerId,
    project: ProjectId,
    (kind, id): (RecordKind, impl Display),
) -> Result<Event, Fault> {
    let target = (RecordKind::Project, project);
    event(customer, project, (kind, id), target, EventType::Expired(kind))
}

/// Returns the event that an incident has ended.
pub fn incident_ended(
    customer: CustomerId,
    project: ProjectId,
    id: IncidentId,
) -> Result<Event, Fault> {
    let source = (RecordKind::Incident, id);
    let target = (RecordKind::Project, project);
    event(customer, project, source, target, EventType::IncidentEnded)
}

/// Returns the event that a test case has reached the threshold of a monitor, or has recovered.
pub fn alarm(
    customer: CustomerId,
    project: ProjectId,
    monitor: MonitorId,
    case: TestCaseId,
    change: AlarmChange,
) -> Result<Event, Fault> {
    let source = (RecordKind::Monitor, monitor);
    event(customer, project, source, (RecordKind::TestCase, case), EventType::Alarm(change))
}

/// Returns the event that a test case was muted or skipped, with the version of its state.
pub fn state_set(
    customer: CustomerId,
    project: ProjectId,
    case: TestCaseId,
    action: Action,
    version: i64,
) -> Result<Event, Fault> {
    let source = (RecordKind::TestCaseState, case);
    let event_type = EventType::Record(RecordKind::TestCaseState, action);
    let target = (RecordKind::Project, project);
    versioned(customer, project, source, target, event_type, Some(version.to_string()))
}

fn event(
    customer: CustomerId,
    project: ProjectId,
    source: (RecordKind, impl Display),
    target: (RecordKind, impl Display),
    event_type: EventType,
) -> Result<Event, Fault> {
    let version = (event_type.action() == Action::Created.name()).then(|| "1".to_owned());
    versioned(customer, project, source, target, event_type, version)
}

fn versioned(
    customer: CustomerId,
    project: ProjectId,
    (kind, id): (RecordKind, impl Display),
    (target, target_id): (RecordKind, impl Display),
    event_type: EventType,
    record_version: Option<String>,
) -> Result<Event, Fault> {
    let changed = RecordChanged {
        source: kind.name().to_owned(),
        source_id: id.to_string(),
        target: target.name().to_owned(),
        target_id: Some(target_id.to_string()),
        action: event_type.action().to_owned(),
        project_id: Some(project.to_string()),
        record_version,
        actor: Some(actor::current()),
    };
    Event::new(customer, id, event_type, &changed)
}
