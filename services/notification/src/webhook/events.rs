//! Notifications about webhooks.

use assay_auth::actor;
use assay_proto::{CustomerId, Fault, NotificationOrigin, WebhookId, notification::Notification};
use sqlx::PgTransaction;

use crate::notification::{publication, rules::NO_STATE};

/// Publishes an action on a webhook as a notification.
pub(crate) async fn publish(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    webhook: WebhookId,
    action: &str,
) -> Result<(), Fault> {
    let notification = Notification {
        source: "Webhook".to_owned(),
        source_id: webhook.to_string(),
        target: "Customer".to_owned(),
        target_id: Some(customer.to_string()),
        action: action.to_owned(),
        state: NO_STATE.to_owned(),
        origin: NotificationOrigin::Assay.into(),
        path: (action != "Deleted").then(|| format!("/api/webhooks/{webhook}")),
        actor: Some(actor::current()),
        ..Notification::default()
    };
    publication::publish(tx, customer, notification).await.map(drop)
}
