//! The gRPC service of incidents.

use assay_auth::Caller;
use assay_proto::{
    IncidentId,
    execution::{
        GetIncidentRequest, Incident, IncidentBatch, ListIncidentsRequest, incident_service_server,
    },
};
use assay_rpc::list::{Batches, answer};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use super::store;
use crate::{catalog::Catalog, parent};

/// The gRPC service of incidents.
pub(crate) struct IncidentService {
    pub(crate) db: PgPool,
    pub(crate) catalog: Catalog,
}

#[tonic::async_trait]
impl incident_service_server::IncidentService for IncidentService {
    type ListIncidentsStream = Batches<IncidentBatch>;

    async fn list_incidents(
        &self,
        request: Request<ListIncidentsRequest>,
    ) -> Result<Response<Self::ListIncidentsStream>, Status> {
        let caller = Caller::of(&request)?;
        let ListIncidentsRequest { project_id, page } = request.into_inner();
        let project = parent::project(&self.db, &self.catalog, &caller, &project_id).await?;
        let (db, customer) = (self.db.clone(), caller.customer);
        answer(page, move |slice| {
            let db = db.clone();
            async move { store::list(&db, customer, project, &slice).await }
        })
        .await
    }

    async fn get_incident(
        &self,
        request: Request<GetIncidentRequest>,
    ) -> Result<Response<Incident>, Status> {
        let caller = Caller::of(&request)?;
        let GetIncidentRequest { project_id, id } = request.into_inner();
        let id = IncidentId::from_path(&id)?;
        let project = parent::project(&self.db, &self.catalog, &caller, &project_id).await?;
        Ok(Response::new(store::get(&self.db, caller.customer, project, id).await?))
    }
}
