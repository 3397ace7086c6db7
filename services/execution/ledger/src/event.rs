//! The events of records of a project that mute failures, or look after them.

use std::fmt::Display;

use assay_events::{Event, EventType, RecordKind};
use assay_proto::{CustomerId, Fault, ProjectId, events::RecordChanged};
use assay_records::Action;

/// Returns the event of an action on a record of a project.
pub fn record(
    customer: CustomerId,
    project: ProjectId,
    (kind, id): (RecordKind, impl Display),
    action: Action,
) -> Result<Event, Fault> {
    event(customer, project, (kind, id), EventType::Record(kind, action))
}

/// Returns the event that a record of a project has expired.
pub fn expired(
    customer: CustomerId,
    project: ProjectId,
    (kind, id): (RecordKind, impl Display),
) -> Result<Event, Fault> {
    event(customer, project, (kind, id), EventType::Expired(kind))
}

fn event(
    customer: CustomerId,
    project: ProjectId,
    (kind, id): (RecordKind, impl Display),
    event_type: EventType,
) -> Result<Event, Fault> {
    let changed = RecordChanged {
        source: kind.name().to_owned(),
        source_id: id.to_string(),
        target: RecordKind::Project.name().to_owned(),
        target_id: Some(project.to_string()),
        action: event_type.action().to_owned(),
    };
    Event::new(customer, id, event_type, &changed)
}
