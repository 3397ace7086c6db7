//! Publication of notifications: in one transaction, a notification is stored, queued for the
//! webhooks that match it, and put into the outbox.

use std::collections::HashMap;

use assay_events::Event;
use assay_proto::{
    CustomerId, Fault, NotificationId, NotificationOrigin,
    notification::{Notification, NotificationInput},
};
use assay_runtime::trace;
use sqlx::PgTransaction;

use super::store;
use crate::{customer, delivery};

/// Trace headers of a notification.
pub(crate) type Trace = HashMap<String, String>;

/// A notification to be published, and its trace.
pub(crate) type Draft = (NotificationInput, Trace);

/// Publishes a notification in the current trace.
pub(crate) async fn publish(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    origin: NotificationOrigin,
    input: NotificationInput,
) -> Result<Notification, Fault> {
    let published = publish_all(tx, customer, origin, &[(input, trace::to_map())]).await?.pop();
    published.ok_or_else(|| Fault::internal("a notification was not inserted"))
}

/// Publishes notifications in this order. Fails if the customer is deleted.
pub(crate) async fn publish_all(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    origin: NotificationOrigin,
    drafts: &[Draft],
) -> Result<Vec<Notification>, Fault> {
    customer::lock(tx, customer).await?;
    customer::require_live(&mut **tx, customer).await?;
    let (inputs, traces): (Vec<_>, Vec<_>) =
        drafts.iter().map(|(input, trace)| (input, trace)).unzip();
    let inserted = store::insert(tx, customer, origin, &inputs).await?;
    delivery::store::insert(tx, customer, &inserted, &traces).await?;
    let events = inserted.iter().zip(&traces).map(|(notification, trace)| {
        Ok(event(customer, notification)?.with_trace(Trace::clone(trace)))
    });
    assay_events::publish_all(tx, events).await?;
    Ok(inserted)
}

/// Returns the event that carries a notification. Both have the same id.
pub(crate) fn event(customer: CustomerId, notification: &Notification) -> Result<Event, Fault> {
    let Notification { id, source, action, .. } = notification;
    let event = Event::untyped(customer, id, source, action, notification)?;
    Ok(event.with_id(NotificationId::from_path(id)?.0))
}
