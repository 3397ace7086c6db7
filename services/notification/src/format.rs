//! The formats in which notifications are sent to webhooks.

mod cd_events;
mod chat;
mod facts;
mod span;
mod summary;
mod title;

use assay_events::CONTENT_TYPE;
use assay_proto::{
    CustomerId, Fault, Timestamp,
    notification::{Notification, WebhookFormat},
};

use self::{facts::Facts, summary::Summary};
use crate::notification::publication;

/// Content type of several events in one message.
const BATCH_CONTENT_TYPE: &str = "application/cloudevents-batch+json";

const JSON: &str = "application/json";

/// Maximum size of the body of a message, in bytes. A larger event is sent alone.
const LARGEST: usize = 4 << 20;

/// A notification and the time when it was created.
pub(crate) type Dated<'a> = (&'a Notification, Timestamp);

/// The body of a message.
pub(crate) struct Body {
    pub(crate) media_type: &'static str,
    pub(crate) content: Vec<u8>,
    /// Number of notifications in it, the first ones.
    pub(crate) count: usize,
}

/// Returns the body of a message about one notification.
pub(crate) fn single(
    format: WebhookFormat,
    customer: CustomerId,
    notification: Dated<'_>,
) -> Result<Body, Fault> {
    let content = match format {
        WebhookFormat::CloudEvents | WebhookFormat::Unspecified => event(customer, notification)?,
        WebhookFormat::CdEvents => cd_event(customer, notification)?,
        chat => message(chat, &[notification])?,
    };
    let is_event = matches!(
        format,
        WebhookFormat::CloudEvents | WebhookFormat::Unspecified | WebhookFormat::CdEvents
    );
    Ok(Body { media_type: if is_event { CONTENT_TYPE } else { JSON }, content, count: 1 })
}

/// Returns the body of a message about several notifications: a batch of CloudEvents, or a message that lists
/// them.
pub(crate) fn several(
    format: WebhookFormat,
    customer: CustomerId,
    notifications: &[Dated<'_>],
) -> Result<Body, Fault> {
    if !matches!(format, WebhookFormat::CloudEvents | WebhookFormat::CdEvents) {
        let (content, count) = (message(format, notifications)?, notifications.len());
        return Ok(Body { media_type: JSON, content, count });
    }
    let (mut content, mut count) = (b"[".to_vec(), 0);
    for notification in notifications {
        let event = match format {
            WebhookFormat::CdEvents => cd_event(customer, *notification)?,
            _ => event(customer, *notification)?,
        };
        if count > 0 {
            if content.len() + event.len() > LARGEST {
                break;
            }
            content.push(b',');
        }
        content.extend(event);
        count += 1;
    }
    content.push(b']');
    Ok(Body { media_type: BATCH_CONTENT_TYPE, content, count })
}

/// Returns the event as on NATS.
fn event(customer: CustomerId, (notification, time): Dated<'_>) -> Result<Vec<u8>, Fault> {
    publication::render(customer, notification, time)
}

/// Returns the event as CDEvents, or as on NATS if they have none for it, such as for a test.
fn cd_event(customer: CustomerId, (notification, time): Dated<'_>) -> Result<Vec<u8>, Fault> {
    let (facts, id) = (Facts::of(notification)?, &notification.id);
    let data = serde_json::to_value(notification).map_err(Fault::internal)?;
    match cd_events::event(customer, id, time, &facts, &data) {
        Some(event) => serde_json::to_vec(&event).map_err(Fault::internal),
        None => event(customer, (notification, time)),
    }
}

fn message(format: WebhookFormat, notifications: &[Dated<'_>]) -> Result<Vec<u8>, Fault> {
    let facts: Vec<_> =
        notifications.iter().map(|(one, _)| Facts::of(one)).collect::<Result<_, _>>()?;
    let summary = Summary::of(&facts);
    let message = match format {
        WebhookFormat::MicrosoftTeams => chat::teams(&summary),
        WebhookFormat::Mattermost => chat::mattermost(&summary),
        WebhookFormat::Discord => chat::discord(&summary),
        _ => chat::slack(&summary),
    };
    serde_json::to_vec(&message).map_err(Fault::internal)
}
