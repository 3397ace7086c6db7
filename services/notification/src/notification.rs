//! `NotificationService`: what happened, as clients tell and read it.

pub(crate) mod rules;
pub(crate) mod store;

use assay_auth::Caller;
use assay_proto::{
    Fault, NotificationId,
    notification::{
        CreateNotificationRequest, DeleteNotificationRequest, ListNotificationsRequest,
        Notification, NotificationBatch, notification_service_server,
    },
};
use assay_runtime::list::{self, Batches};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

pub(crate) struct NotificationService {
    pub(crate) db: PgPool,
}

#[tonic::async_trait]
impl notification_service_server::NotificationService for NotificationService {
    type ListNotificationsStream = Batches<NotificationBatch>;

    async fn list_notifications(
        &self,
        request: Request<ListNotificationsRequest>,
    ) -> Result<Response<Self::ListNotificationsStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let db = self.db.clone();
        list::answer(request.into_inner().page, move |slice| {
            let db = db.clone();
            async move { store::list(&db, customer, &slice).await }
        })
        .await
    }

    async fn create_notification(
        &self,
        request: Request<CreateNotificationRequest>,
    ) -> Result<Response<Notification>, Status> {
        let customer = Caller::of(&request)?.customer;
        let input = rules::valid(request.into_inner().notification.unwrap_or_default())?;

        let mut tx = self.db.begin().await.map_err(Fault::from)?;
        let notification = store::insert(&mut tx, customer, input).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(notification))
    }

    async fn delete_notification(
        &self,
        request: Request<DeleteNotificationRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let id = NotificationId::named(&request.get_ref().id)?;

        let mut tx = self.db.begin().await.map_err(Fault::from)?;
        store::delete(&mut tx, customer, id).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(()))
    }
}
