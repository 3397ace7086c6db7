//! The events of cause rules.

use assay_events::{Event, EventType, RecordKind};
use assay_proto::{CauseRuleId, CustomerId, Fault, ProjectId, events::RecordChanged};
use assay_records::Action;

/// Returns the event of an action on a cause rule.
pub fn record(
    customer: CustomerId,
    project: ProjectId,
    id: CauseRuleId,
    action: Action,
) -> Result<Event, Fault> {
    let event_type = EventType::Record(RecordKind::CauseRule, action);
    let changed = RecordChanged {
        source: RecordKind::CauseRule.name().to_owned(),
        source_id: id.to_string(),
        target: RecordKind::Project.name().to_owned(),
        target_id: Some(project.to_string()),
        action: event_type.action().to_owned(),
    };
    Event::new(customer, id, event_type, &changed)
}
