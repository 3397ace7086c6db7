//! Publication of notifications: in one transaction, a notification is stored, queued for the
//! webhooks that match it, and put into the outbox.

use std::collections::HashMap;

use assay_events::Event;
use assay_proto::{
    CustomerId, Fault, NotificationId, NotificationOrigin, Timestamp, UserId,
    notification::Notification,
};
use assay_runtime::trace;
use sqlx::PgTransaction;

use super::store;
use crate::{customer, delivery, streams::NOTIFICATIONS};

/// Trace headers of a notification.
pub(crate) type Trace = HashMap<String, String>;

/// A notification to be published, which has no id yet, and its trace.
pub(crate) type Draft = (Notification, Trace);

/// Publishes a notification in the current trace.
pub(crate) async fn publish(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    notification: Notification,
) -> Result<Notification, Fault> {
    let drafts = vec![(notification, trace::to_map())];
    let published = publish_all(tx, customer, drafts).await?.pop();
    published.ok_or_else(|| Fault::internal("a notification was not inserted"))
}

/// Publishes notifications in this order, with new ids. Fails if the customer is deleted.
pub(crate) async fn publish_all(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    drafts: Vec<Draft>,
) -> Result<Vec<Notification>, Fault> {
    customer::lock(tx, customer).await?;
    customer::require_live(&mut **tx, customer).await?;
    let (mut notifications, traces): (Vec<_>, Vec<_>) = drafts.into_iter().unzip();
    for notification in &mut notifications {
        notification.id = NotificationId::new().to_string();
        "1".clone_into(&mut notification.data_version);
    }
    store::insert(tx, customer, &notifications).await?;
    delivery::store::insert(tx, customer, &notifications, &traces).await?;
    let events = notifications
        .iter()
        .zip(&traces)
        .map(|(notification, trace)| Ok(event(customer, notification)?.with_trace(trace.clone())));
    assay_events::publish_all(tx, events).await?;
    Ok(notifications)
}

/// Returns a notification as a CloudEvent in JSON. The messages on NATS, the requests to webhooks and the
/// server-sent events have it.
pub(crate) fn render(
    customer: CustomerId,
    notification: &Notification,
    time: Timestamp,
) -> Result<Vec<u8>, Fault> {
    event(customer, notification)?.to_json(NOTIFICATIONS, time)
}

/// Returns the event that carries a notification. Both have the same id.
fn event(customer: CustomerId, notification: &Notification) -> Result<Event, Fault> {
    let Notification { id, source, action, .. } = notification;
    let event = Event::untyped(customer, id, source, action, notification)?;
    let event = event.with_id(NotificationId::from_path(id)?.0);
    if notification.origin() == NotificationOrigin::Assay {
        return Ok(event);
    }
    let user = notification.actor.as_ref().and_then(|actor| actor.user_id.as_deref());
    // Notifications of earlier releases have no actor.
    let user = user.map(UserId::from_record).transpose()?;
    Ok(event.of_client(user.unwrap_or(UserId(uuid::Uuid::nil()))))
}
