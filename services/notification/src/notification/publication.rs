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

/// A notification to be published, with its trace, and its id unless it gets a new one.
pub(crate) type Draft = (Option<NotificationId>, NotificationInput, Trace);

/// Publishes a notification in the current trace.
pub(crate) async fn publish(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    origin: NotificationOrigin,
    input: NotificationInput,
) -> Result<Notification, Fault> {
    let draft = (None, input, trace::to_map());
    let published = publish_all(tx, customer, origin, &[draft]).await?.pop();
    published.ok_or_else(|| Fault::internal("a notification was not inserted"))
}

/// Publishes notifications in this order, except those whose id exists. Fails if the customer is
/// deleted.
pub(crate) async fn publish_all(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    origin: NotificationOrigin,
    drafts: &[Draft],
) -> Result<Vec<Notification>, Fault> {
    customer::lock(tx, customer).await?;
    customer::require_live(&mut **tx, customer).await?;
    // New ids are in the order of the commits, since the customer is locked.
    let ids: Vec<_> =
        drafts.iter().map(|(id, ..)| id.unwrap_or_else(NotificationId::new)).collect();
    let inputs: Vec<_> = drafts.iter().map(|(_, input, _)| input).collect();
    let mut inserted = store::insert(tx, customer, origin, &ids, &inputs).await?;
    let traces = drafts.iter().map(|(_, _, trace)| trace);
    let published = ids.iter().zip(traces);
    let published = published.filter_map(|(id, trace)| Some((inserted.remove(id)?, trace)));
    let (inserted, traces): (Vec<_>, Vec<_>) = published.unzip();
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
