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
use uuid::Uuid;

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

/// Publishes notifications in this order, with new ids, each larger than all earlier ones of the customer. Fails if the
/// customer is deleted.
pub(crate) async fn publish_all(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    drafts: Vec<Draft>,
) -> Result<Vec<Notification>, Fault> {
    customer::lock(tx, customer).await?;
    customer::require_live(&mut **tx, customer).await?;
    let (mut notifications, traces): (Vec<_>, Vec<_>) = drafts.into_iter().unzip();
    let mut last = store::last_id(&mut **tx, customer).await?;
    for notification in &mut notifications {
        let id = id_after(last);
        last = Some(id);
        notification.id = id.to_string();
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

/// Returns a new id that is larger than the last one of the customer, even if the clock of another replica is ahead of
/// this one.
fn id_after(last: Option<NotificationId>) -> NotificationId {
    let new = NotificationId::new();
    match last {
        Some(last) if last >= new => {
            NotificationId(Uuid::from_u128(last.0.as_u128().saturating_add(1)))
        }
        _ => new,
    }
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
    // Notifications that were stored before migration 110 have no actor.
    let user = user.map(UserId::from_record).transpose()?;
    Ok(event.of_client(user.unwrap_or(UserId(Uuid::nil()))))
}

#[test]
fn ids_grow_although_the_last_one_is_from_a_clock_that_is_ahead() {
    let now = NotificationId::new();
    let ahead = NotificationId(Uuid::from_u128(now.0.as_u128() + (300_000_u128 << 80)));
    let next = id_after(Some(ahead));
    assert!(next > ahead && id_after(Some(next)) > next);
    assert_eq!(next.0.get_version_num(), 7);
    assert!(id_after(Some(now)) > now && id_after(None) > now);
}
