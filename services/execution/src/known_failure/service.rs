//! The gRPC service of known failures.

use assay_auth::Caller;
use assay_database::begin;
use assay_events::{Event, RecordKind, publish};
use assay_fingerprint::Fingerprint;
use assay_ledger::{
    event,
    known_failure::{rules, store},
};
use assay_proto::{
    CustomerId, Fault, KnownFailureId, ProjectId,
    execution::{
        CreateKnownFailureRequest, DeleteKnownFailureRequest, FailureMatchBatch,
        GetKnownFailureRequest, KnownFailure, KnownFailureBatch, ListKnownFailuresRequest,
        ListMatchesRequest, UpdateKnownFailureRequest, known_failure_service_server,
    },
};
use assay_records::{Action, Change};
use assay_rpc::list::{Batches, answer};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use crate::{catalog::Catalog, parent};

/// The gRPC service of known failures.
pub(crate) struct KnownFailureService {
    pub(crate) db: PgPool,
    pub(crate) catalog: Catalog,
}

#[tonic::async_trait]
impl known_failure_service_server::KnownFailureService for KnownFailureService {
    type ListKnownFailuresStream = Batches<KnownFailureBatch>;
    type ListMatchesStream = Batches<FailureMatchBatch>;

    async fn list_known_failures(
        &self,
        request: Request<ListKnownFailuresRequest>,
    ) -> Result<Response<Self::ListKnownFailuresStream>, Status> {
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

    async fn get_known_failure(
        &self,
        request: Request<GetKnownFailureRequest>,
    ) -> Result<Response<KnownFailure>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let id = KnownFailureId::from_path(&request.id)?;
        let project =
            parent::project(&self.db, &self.catalog, &caller, &request.project_id).await?;
        Ok(Response::new(store::get(&self.db, caller.customer, project, id).await?))
    }

    async fn create_known_failure(
        &self,
        request: Request<CreateKnownFailureRequest>,
    ) -> Result<Response<KnownFailure>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let latest = store::latest_end(&self.db).await?;
        let known = rules::check_new(request.known_failure.unwrap_or_default(), latest)?;
        let project =
            parent::project(&self.db, &self.catalog, &caller, &request.project_id).await?;
        let mut tx = begin(&self.db).await?;
        let id = store::create(&mut tx, &caller, project, &known).await?;
        store::check_number(&mut tx, caller.customer, project).await?;
        publish(&mut tx, &changed(caller.customer, project, id, Action::Created)?).await?;
        let known = store::get(&mut *tx, caller.customer, project, id).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(known))
    }

    async fn update_known_failure(
        &self,
        request: Request<UpdateKnownFailureRequest>,
    ) -> Result<Response<KnownFailure>, Status> {
        let customer = Caller::of(&request)?.customer;
        let UpdateKnownFailureRequest { project_id, id, data_version, changes, fields } =
            request.into_inner();
        let project = ProjectId::from_path(&project_id)?;
        let id = KnownFailureId::from_path(&id)?;
        let change = Change { data_version, changes, fields };
        let mut tx = begin(&self.db).await?;
        let current = store::lock(&mut tx, customer, project, id).await?;
        let input = change.apply("known failure", &current, &current.data_version)?;
        rules::check_change(&current, &input, store::latest_end(&mut *tx).await?)?;
        store::save(&mut tx, customer, id, &input).await?;
        publish(&mut tx, &changed(customer, project, id, Action::Changed)?).await?;
        let known = store::get(&mut *tx, customer, project, id).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(known))
    }

    async fn delete_known_failure(
        &self,
        request: Request<DeleteKnownFailureRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = KnownFailureId::from_path(&request.id)?;
        let mut tx = begin(&self.db).await?;
        store::delete(&mut tx, customer, project, id).await?;
        publish(&mut tx, &changed(customer, project, id, Action::Deleted)?).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(()))
    }

    async fn list_matches(
        &self,
        request: Request<ListMatchesRequest>,
    ) -> Result<Response<Self::ListMatchesStream>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let fingerprint: Fingerprint =
            request.fingerprint.parse().map_err(|_| Fault::NotFound("failure"))?;
        let days = rules::check_days(request.days)?;
        let project =
            parent::project(&self.db, &self.catalog, &caller, &request.project_id).await?;
        let (db, customer) = (self.db.clone(), caller.customer);
        answer(request.page, move |slice| {
            let db = db.clone();
            async move { store::matches(&db, customer, project, fingerprint, days, &slice).await }
        })
        .await
    }
}

/// Returns the event of an action on a known failure.
fn changed(
    customer: CustomerId,
    project: ProjectId,
    id: KnownFailureId,
    action: Action,
) -> Result<Event, Fault> {
    event::record(customer, project, (RecordKind::KnownFailure, id), action)
}
