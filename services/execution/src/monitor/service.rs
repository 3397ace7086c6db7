//! The gRPC service of monitors.

use assay_auth::Caller;
use assay_database::begin;
use assay_events::{Event, RecordKind, publish};
use assay_ledger::event;
use assay_proto::{
    CustomerId, Fault, MonitorId, ProjectId,
    execution::{
        CreateMonitorRequest, DeleteMonitorRequest, GetMonitorRequest, ListMonitorActionsRequest,
        ListMonitorsRequest, Monitor, MonitorActionBatch, MonitorBatch, UpdateMonitorRequest,
        monitor_service_server,
    },
};
use assay_records::{Action, Change};
use assay_rpc::list::{Batches, answer};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use super::{alarm, rules, store};
use crate::{catalog::Catalog, parent};

/// The gRPC service of monitors.
pub(crate) struct MonitorService {
    pub(crate) db: PgPool,
    pub(crate) catalog: Catalog,
}

#[tonic::async_trait]
impl monitor_service_server::MonitorService for MonitorService {
    type ListMonitorsStream = Batches<MonitorBatch>;
    type ListMonitorActionsStream = Batches<MonitorActionBatch>;

    async fn list_monitors(
        &self,
        request: Request<ListMonitorsRequest>,
    ) -> Result<Response<Self::ListMonitorsStream>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project =
            parent::project(&self.db, &self.catalog, &caller, &request.project_id).await?;
        let (db, customer) = (self.db.clone(), caller.customer);
        answer(request.page, move |slice| {
            let db = db.clone();
            async move { store::list(&db, customer, project, &slice).await }
        })
        .await
    }

    async fn get_monitor(
        &self,
        request: Request<GetMonitorRequest>,
    ) -> Result<Response<Monitor>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let id = MonitorId::from_path(&request.id)?;
        let project =
            parent::project(&self.db, &self.catalog, &caller, &request.project_id).await?;
        Ok(Response::new(store::get(&self.db, caller.customer, project, id).await?))
    }

    async fn create_monitor(
        &self,
        request: Request<CreateMonitorRequest>,
    ) -> Result<Response<Monitor>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let input = rules::valid(request.monitor.unwrap_or_default())?;
        let project =
            parent::project(&self.db, &self.catalog, &caller, &request.project_id).await?;
        let mut tx = begin(&self.db).await?;
        let monitor = store::insert(&mut tx, &caller, project, &input).await?;
        let id = MonitorId::from_record(&monitor.id)?;
        publish(&mut tx, &changed(caller.customer, project, id, Action::Created)?).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(monitor))
    }

    async fn update_monitor(
        &self,
        request: Request<UpdateMonitorRequest>,
    ) -> Result<Response<Monitor>, Status> {
        let customer = Caller::of(&request)?.customer;
        let UpdateMonitorRequest { project_id, id, data_version, changes, fields } =
            request.into_inner();
        let project = ProjectId::from_path(&project_id)?;
        let id = MonitorId::from_path(&id)?;
        let change = Change { data_version, changes, fields };
        let mut tx = begin(&self.db).await?;
        let current = store::lock(&mut tx, customer, project, id).await?;
        let input = rules::valid(change.apply("monitor", &current, &current.data_version)?)?;
        if rules::begins_again(&current, &input) {
            alarm::forget(&mut tx, customer, project, id).await?;
        }
        let monitor = store::update(&mut tx, customer, project, id, &input).await?;
        publish(&mut tx, &changed(customer, project, id, Action::Changed)?).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(monitor))
    }

    async fn delete_monitor(
        &self,
        request: Request<DeleteMonitorRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = MonitorId::from_path(&request.id)?;
        let mut tx = begin(&self.db).await?;
        store::delete(&mut tx, customer, project, id).await?;
        publish(&mut tx, &changed(customer, project, id, Action::Deleted)?).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(()))
    }

    async fn list_monitor_actions(
        &self,
        request: Request<ListMonitorActionsRequest>,
    ) -> Result<Response<Self::ListMonitorActionsStream>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let id = MonitorId::from_path(&request.id)?;
        let project =
            parent::project(&self.db, &self.catalog, &caller, &request.project_id).await?;
        let (db, customer) = (self.db.clone(), caller.customer);
        store::get(&db, customer, project, id).await?;
        answer(request.page, move |slice| {
            let db = db.clone();
            async move { store::actions(&db, customer, id, &slice).await }
        })
        .await
    }
}

/// Returns the event of an action on a monitor.
fn changed(
    customer: CustomerId,
    project: ProjectId,
    id: MonitorId,
    action: Action,
) -> Result<Event, Fault> {
    event::record(customer, project, (RecordKind::Monitor, id), action)
}
