//! The events of records of a project that are about failures: they mute them, join them, or look after them.

use std::fmt::Display;

use assay_events::{AlarmChange, Event, EventType, RecordKind};
use assay_proto::{
    CustomerId, Fault, IncidentId, MonitorId, ProjectId, TestCaseId, events::RecordChanged,
};
use assay_records::Action;

/// Returns the event of an action on a record of a project.
pub fn record(
    customer: CustomerId,
    project: ProjectId,
    (kind, id): (RecordKind, impl Display),
    action: Action,
) -> Result<Event, Fault> {
    event(customer, (kind, id), (RecordKind::Project, project), EventType::Record(kind, action))
}

/// Returns the event that a record of a project has expired.
pub fn expired(
    customer: CustomerId,
    project: ProjectId,
    (kind, id): (RecordKind, impl Display),
) -> Result<Event, Fault> {
    event(customer, (kind, id), (RecordKind::Project, project), EventType::Expired(kind))
}

/// Returns the event that an incident has ended.
pub fn incident_ended(
    customer: CustomerId,
    project: ProjectId,
    id: IncidentId,
) -> Result<Event, Fault> {
    let source = (RecordKind::Incident, id);
    event(customer, source, (RecordKind::Project, project), EventType::IncidentEnded)
}

/// Returns the event that a test case has reached the threshold of a monitor, or has recovered.
pub fn alarm(
    customer: CustomerId,
    monitor: MonitorId,
    case: TestCaseId,
    change: AlarmChange,
) -> Result<Event, Fault> {
    let source = (RecordKind::Monitor, monitor);
    event(customer, source, (RecordKind::TestCase, case), EventType::Alarm(change))
}

fn event(
    customer: CustomerId,
    (kind, id): (RecordKind, impl Display),
    (target, target_id): (RecordKind, impl Display),
    event_type: EventType,
) -> Result<Event, Fault> {
    let changed = RecordChanged {
        source: kind.name().to_owned(),
        source_id: id.to_string(),
        target: target.name().to_owned(),
        target_id: Some(target_id.to_string()),
        action: event_type.action().to_owned(),
    };
    Event::new(customer, id, event_type, &changed)
}
