//! The notification as a row and as an event.

use assay_events::Event;
use assay_proto::{CustomerId, Fault, NotificationId, notification::Notification};

/// Columns of a notification, without its customer.
pub(crate) const COLUMNS: &str = "id, source, source_id, target, target_id, action, state,
                       revision::text as data_version, archived";

/// Returns the event that carries a notification. Both have the same id.
pub(crate) fn event(customer: CustomerId, notification: &Notification) -> Result<Event, Fault> {
    let Notification { id, source, action, .. } = notification;
    let event = Event::untyped(customer, id, source, action, notification)?;
    Ok(event.with_id(NotificationId::from_path(id)?.0))
}
