//! The events of known failures.

use assay_events::{Event, EventType, RecordKind};
use assay_proto::{CustomerId, Fault, KnownFailureId, ProjectId, events::RecordChanged};
use assay_records::Action;

/// Returns the event of an action on a known failure.
pub fn record(
    customer: CustomerId,
    project: ProjectId,
    id: KnownFailureId,
    action: Action,
) -> Result<Event, Fault> {
    event(customer, project, id, EventType::Record(RecordKind::KnownFailure, action))
}

/// Returns the event that a known failure has expired.
pub fn expired(
    customer: CustomerId,
    project: ProjectId,
    id: KnownFailureId,
) -> Result<Event, Fault> {
    event(customer, project, id, EventType::KnownFailureExpired)
}

fn event(
    customer: CustomerId,
    project: ProjectId,
    id: KnownFailureId,
    event_type: EventType,
) -> Result<Event, Fault> {
    let changed = RecordChanged {
        source: RecordKind::KnownFailure.name().to_owned(),
        source_id: id.to_string(),
        target: RecordKind::Project.name().to_owned(),
        target_id: Some(project.to_string()),
        action: event_type.action().to_owned(),
    };
    Event::new(customer, id, event_type, &changed)
}
