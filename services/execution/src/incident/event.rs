//! The events of incidents.

use assay_events::{Event, EventType, RecordKind};
use assay_proto::{CustomerId, Fault, IncidentId, ProjectId, events::RecordChanged};
use assay_records::Action;

/// Returns the event that an incident has begun.
pub(super) fn created(
    customer: CustomerId,
    project: ProjectId,
    id: IncidentId,
) -> Result<Event, Fault> {
    event(customer, project, id, EventType::Record(RecordKind::Incident, Action::Created))
}

/// Returns the event that an incident has ended.
pub(super) fn ended(
    customer: CustomerId,
    project: ProjectId,
    id: IncidentId,
) -> Result<Event, Fault> {
    event(customer, project, id, EventType::IncidentEnded)
}

fn event(
    customer: CustomerId,
    project: ProjectId,
    id: IncidentId,
    event_type: EventType,
) -> Result<Event, Fault> {
    let changed = RecordChanged {
        source: RecordKind::Incident.name().to_owned(),
        source_id: id.to_string(),
        target: RecordKind::Project.name().to_owned(),
        target_id: Some(project.to_string()),
        action: event_type.action().to_owned(),
    };
    Event::new(customer, id, event_type, &changed)
}
