//! The server-sent events of a stream and their data, as the document describes them.

use assay_proto::{Actor, ActorKind, NotificationOrigin, TestResult, notification::Notification};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::event_stream;

/// Data of an event: a CloudEvent if its name is `notification`, and the reason if it is `reset`.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only documents the data")]
pub(super) enum NotificationEventData {
    Notification(Box<NotificationEvent>),
    Reset(StreamReset),
}

/// Data of the event `reset`: the client may have missed notifications, and reads what it needs again. The stream
/// continues with the next notification.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "PascalCase")]
pub(super) struct StreamReset {
    pub(super) reason: ResetReason,
}

/// Reason of a reset: Assay does not know the `id` after which the stream was to continue, because the notification was
/// removed or the database restored.
#[derive(Serialize, ToSchema)]
pub(super) enum ResetReason {
    UnknownLastEventId,
}

/// Notification as a CloudEvent 1.0, the same as on NATS and in requests to webhooks.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only documents the event, which the notification service renders")]
pub(super) struct NotificationEvent {
    /// Version of CloudEvents, `1.0`.
    specversion: String,
    /// Id of the notification.
    #[schema(format = "uuid")]
    id: String,
    /// `/assay/notifications`, or `/assay/clients/<id of the user>` if a client has created it.
    source: String,
    /// Type, such as `io.assay.notifications.testset.completed.v1`. If a client has created it, the type
    /// begins with `io.assay.client.`.
    #[schema(rename = "type")]
    kind: String,
    /// Id of the notification.
    subject: String,
    /// Time of the notification.
    #[schema(format = DateTime)]
    time: String,
    /// Media type of the data, `application/json`.
    datacontenttype: String,
    /// Id of the customer.
    #[schema(format = "uuid")]
    tenantid: String,
    data: Notification,
}

/// Returns an example of an event: the verdict of an execution.
pub(super) fn example() -> Value {
    let id = "019cade2-11c0-779f-8491-6e652d066e91";
    let execution = "019cade2-0f5a-7c21-9d13-5a7b8c9d0e1f";
    let set = "019cadd9-3b10-7a44-8e52-1c2d3e4f5a6b";
    let project = "019cadd8-9e01-7b33-9f41-0b1c2d3e4f5a";
    let actor = Actor {
        kind: ActorKind::Token.into(),
        user_id: Some("019cadd8-8d02-7c22-8a31-9a8b7c6d5e4f".to_owned()),
        name: "Ada Lovelace".to_owned(),
        token_id: Some("019cadd8-8e03-7d11-9b21-8f7e6d5c4b3a".to_owned()),
    };
    let notification = Notification {
        id: id.to_owned(),
        source: "Execution".to_owned(),
        source_id: execution.to_owned(),
        target: "TestSet".to_owned(),
        target_id: Some(set.to_owned()),
        action: "Judged".to_owned(),
        state: "Failed".to_owned(),
        data_version: "1".to_owned(),
        origin: NotificationOrigin::Assay.into(),
        project_id: Some(project.to_owned()),
        test_set_id: Some(set.to_owned()),
        test_set_name: Some("Nightly regression".to_owned()),
        execution_id: Some(execution.to_owned()),
        result: Some(TestResult::Failed.into()),
        branch: Some("main".to_owned()),
        path: Some(format!("/api/projects/{project}/executions/{execution}")),
        url: Some(format!("https://assay.example.com/executions/{execution}")),
        record_version: Some("42".to_owned()),
        actor: Some(actor),
        ..Notification::default()
    };
    let event = json!({
        "specversion": "1.0",
        "id": id,
        "source": "/assay/notifications",
        "type": "io.assay.notifications.execution.judged.v1",
        "subject": id,
        "time": "2026-03-02T09:30:00.000000Z",
        "datacontenttype": "application/json",
        "tenantid": "019cadd8-7c01-7e00-8c11-7e6d5c4b3a29",
        "data": notification,
    });
    event_stream::example("notification", id, &event)
}
