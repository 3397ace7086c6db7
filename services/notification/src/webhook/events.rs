//! Notifications about webhooks.

use assay_proto::{
    CustomerId, Fault, NotificationOrigin, WebhookId, notification::NotificationInput,
};
use sqlx::PgTransaction;

use crate::notification::{publication, rules::NO_STATE};

/// Publishes an action on a webhook as a notification.
pub(crate) async fn publish(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    webhook: WebhookId,
    action: &str,
) -> Result<(), Fault> {
    let notification = NotificationInput {
        source: "Webhook".to_owned(),
        source_id: webhook.to_string(),
        target: "Customer".to_owned(),
        target_id: Some(customer.to_string()),
        action: action.to_owned(),
        state: Some(NO_STATE.to_owned()),
    };
    publication::publish(tx, customer, NotificationOrigin::Assay, notification).await.map(drop)
}
