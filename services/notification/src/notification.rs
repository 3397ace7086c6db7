//! `NotificationService`: clients add, list, watch and delete notifications.

mod details;
pub(crate) mod link;
mod position;
pub(crate) mod publication;
pub(crate) mod rules;
pub(crate) mod store;
mod watch;

use assay_auth::Caller;
use assay_database::begin;
use assay_fair::Shares;
use assay_proto::{
    Fault, NotificationId, NotificationOrigin, Permission,
    notification::{
        CreateNotificationRequest, DeleteNotificationRequest, ListNotificationsRequest,
        Notification, NotificationBatch, NotificationFilter, WatchNotificationsRequest,
        WatchedNotification, notification_service_server,
    },
};
use assay_rpc::list::{self, Batches};
use futures::{StreamExt, TryStreamExt, stream};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use self::{
    position::{BEGINNING, LastEvent},
    watch::Memory,
};
use crate::{customer, filter::Filter, signal::NotificationSignal};

pub(crate) struct NotificationService {
    db: PgPool,
    shares: Shares,
    signal: NotificationSignal,
    memory: Memory,
}

impl NotificationService {
    pub(crate) fn new(db: PgPool, shares: Shares, signal: NotificationSignal) -> Self {
        Self { db, shares, signal, memory: Memory::default() }
    }
}

#[tonic::async_trait]
impl notification_service_server::NotificationService for NotificationService {
    type ListNotificationsStream = Batches<NotificationBatch>;
    type WatchNotificationsStream = Batches<WatchedNotification>;

    async fn list_notifications(
        &self,
        request: Request<ListNotificationsRequest>,
    ) -> Result<Response<Self::ListNotificationsStream>, Status> {
        let caller = Caller::of(&request)?;
        let customer = caller.customer;
        let ListNotificationsRequest { page, filter } = request.into_inner();
        let (db, filter) = (self.db.clone(), filter_of(&caller, filter)?);
        customer::require_live(&db, customer).await?;
        list::answer(page, move |slice| {
            let (db, filter) = (db.clone(), filter.clone());
            async move { store::list(&db, customer, &filter, &slice).await }
        })
        .await
    }

    async fn watch_notifications(
        &self,
        request: Request<WatchNotificationsRequest>,
    ) -> Result<Response<Self::WatchNotificationsStream>, Status> {
        let caller = Caller::of(&request)?;
        let customer = caller.customer;
        let WatchNotificationsRequest { after, filter, last_event_id } = request.into_inner();
        let filter = filter_of(&caller, filter)?;
        let last = last_event_id.as_deref().map(LastEvent::parse).transpose()?;
        let share = self.shares.acquire(customer).await?;
        customer::require_live(&self.db, customer).await?;
        let known = match last {
            Some(last) => position::after(&self.db, customer, last).await?,
            None => after,
        };
        let (end, last_id) = match known {
            Some(after) => (after, None),
            None => position::end(&self.db, customer).await?,
        };
        let reset = last.filter(|_| known.is_none()).map(|_| reset(last_id));
        drop(share);
        let waiter = self.signal.register(customer)?;
        let (db, shares, memory) = (self.db.clone(), self.shares.clone(), self.memory.clone());
        let source = watch::Source { db, shares, memory, customer, filter };
        let watched = watch::stream(waiter, source, end);
        let watched = stream::iter(reset.map(Ok)).chain(watched);
        Ok(Response::new(watched.map_err(Status::from).boxed()))
    }

    async fn create_notification(
        &self,
        request: Request<CreateNotificationRequest>,
    ) -> Result<Response<Notification>, Status> {
        let caller = Caller::of(&request)?;
        let input = rules::validate(request.into_inner().notification.unwrap_or_default())?;
        let notification = Notification {
            source: input.source,
            source_id: input.source_id,
            target: input.target,
            target_id: input.target_id,
            action: input.action,
            state: input.state.unwrap_or_default(),
            origin: NotificationOrigin::Client.into(),
            actor: Some(caller.actor()),
            ..Notification::default()
        };

        let mut tx = begin(&self.db).await?;
        let notification = publication::publish(&mut tx, caller.customer, notification).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(notification))
    }

    async fn delete_notification(
        &self,
        request: Request<DeleteNotificationRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let id = NotificationId::from_path(&request.get_ref().id)?;

        let mut tx = begin(&self.db).await?;
        customer::require_live(&mut *tx, customer).await?;
        store::delete(&mut tx, customer, id).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(()))
    }
}

/// The message to a client whose last event is unknown. `last` is the last notification that it does not
/// get. Without one, its id is that of the beginning, so that a client which reconnects misses nothing.
fn reset(last: Option<NotificationId>) -> WatchedNotification {
    let event_id = last.map_or_else(|| BEGINNING.to_owned(), |id| id.to_string());
    WatchedNotification { event_id, is_reset: true, ..WatchedNotification::default() }
}

/// Returns the filter of a caller. Entries of the audit log are for those who may read it.
fn filter_of(caller: &Caller, filter: Option<NotificationFilter>) -> Result<Filter, Fault> {
    Filter::read(filter.unwrap_or_default(), caller.may(Permission::UserManagement))
}
