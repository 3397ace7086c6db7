//! `/api/notifications`.

mod event;
mod stream;

use assay_auth::Caller;
use assay_proto::notification::{
    CreateNotificationRequest, DeleteNotificationRequest, ListNotificationsRequest, Notification,
    NotificationFilter, NotificationInput,
};
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    body::Body,
    list::{List, Listing},
    path::Path,
    problem::Problem,
    query::Query,
    response::{Created, Json, Resource},
    services::{Notifications, Services},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(delete))
        .merge(stream::routes())
}

/// The notifications to return; all by default. Documented names are read in any case, and misspelt ones are
/// rejected.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct Filter {
    /// Return only notifications with this kind of source, such as `TestCase`.
    #[param(example = "TestCase")]
    source: Option<String>,
    /// Return only notifications with this action, such as `Created`.
    #[param(example = "Created")]
    action: Option<String>,
    /// Return only notifications that `Assay` has created, or only those that a `Client` has.
    #[param(example = "Assay")]
    origin: Option<String>,
    /// Return only these notifications: `Source.Action`, such as `TestSet.Completed`, or
    /// `Client.Source.Action` for those that clients have created. Either part can be `*`. Several are
    /// separated by commas.
    #[param(example = "TestCase.Created")]
    event: Option<String>,
    /// Return only notifications of the project with this id.
    #[param(example = "019cade2-11c0-7594-983c-a6917545a63c")]
    project_id: Option<String>,
    /// Return only notifications about executions and test reports of this branch. `*` stands for any
    /// characters, such as in `release/*`.
    #[param(example = "main")]
    branch: Option<String>,
    /// Return only notifications about executions and test reports with one of these results, separated
    /// by commas.
    #[param(example = "Failed,Error")]
    result: Option<String>,
    /// Return only notifications about executions and test reports of the test set with this id.
    #[param(example = "019cadd9-3b10-7a44-8e52-1c2d3e4f5a6b")]
    test_set_id: Option<String>,
    /// Return only the ends of executions with one of these trends, separated by commas: `Worse`, `Same` or
    /// `Better` than the execution before. With `owner`, the tests of this owner have the trend.
    #[param(example = "Worse")]
    trend: Option<String>,
    /// Return only notifications about tests of this owner: their reports, and the ends of executions in which
    /// one of them has failed or is fixed.
    #[param(example = "Checkout team")]
    owner: Option<String>,
}

impl From<Filter> for NotificationFilter {
    fn from(filter: Filter) -> Self {
        Self {
            source: filter.source,
            action: filter.action,
            origin: filter.origin,
            event: filter.event,
            project_id: filter.project_id,
            branch: filter.branch,
            result: filter.result,
            test_set_id: filter.test_set_id,
            trend: filter.trend,
            owner: filter.owner,
        }
    }
}

impl Resource for Notification {
    fn data_version(&self) -> Option<&str> {
        Some(&self.data_version)
    }
}

/// Lists the notifications, newest first.
#[utoipa::path(
    get, path = "/api/notifications", operation_id = "list_notifications", tag = "Notifications",
    params(Listing, Filter),
    extensions(("x-grpc-method" = json!("/assay.notification.v1.NotificationService/ListNotifications"))),
    responses((status = OK, description = "The notifications", body = [Notification])),
)]
async fn list(
    State(mut notifications): State<Notifications>,
    caller: Caller,
    listing: Listing,
    Query(filter): Query<Filter>,
) -> Result<List, Problem> {
    let filter = Some(filter.into());
    let request = ListNotificationsRequest { page: Some(listing.page()), filter };
    let batches = notifications.list_notifications(caller.call(request)).await?;
    listing.respond(batches).await
}

/// Adds a notification and publishes it to other systems.
#[utoipa::path(
    post, path = "/api/notifications", operation_id = "create_notification",
    tag = "Notifications", request_body = NotificationInput,
    extensions(("x-grpc-method" = json!("/assay.notification.v1.NotificationService/CreateNotification"))),
    responses((status = CREATED, description = "The new notification", body = Notification)),
)]
async fn create(
    State(mut notifications): State<Notifications>,
    caller: Caller,
    Body(input): Body<NotificationInput>,
) -> Result<Created<Json<Notification>>, Problem> {
    let request = CreateNotificationRequest { notification: Some(input) };
    let record = notifications.create_notification(caller.call(request)).await?.into_inner();
    Ok(Created(format!("/api/notifications/{}", record.id), Json(record)))
}

/// Deletes a notification.
#[utoipa::path(
    delete, path = "/api/notifications/{notificationId}", operation_id = "delete_notification",
    tag = "Notifications",
    extensions(("x-grpc-method" = json!("/assay.notification.v1.NotificationService/DeleteNotification"))),
    responses((status = NO_CONTENT, description = "The notification has been deleted")),
)]
async fn delete(
    State(mut notifications): State<Notifications>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    notifications.delete_notification(caller.call(DeleteNotificationRequest { id })).await?;
    Ok(StatusCode::NO_CONTENT)
}
