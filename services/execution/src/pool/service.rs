//! The gRPC service of pools.

use assay_auth::{Caller, Seal};
use assay_database::begin;
use assay_ledger::{lease::pooled, schedule};
use assay_proto::{
    Fault, PoolId, ProjectId,
    execution::{
        CreatePoolRequest, DeletePoolRequest, GetPoolRequest, ListPoolsRequest, Pool, PoolBatch,
        UpdatePoolRequest, pool_service_server,
    },
};
use assay_records::Change;
use assay_rpc::list::{Batches, answer};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use super::{
    contents::{Contents, shown},
    rules, store,
};
use crate::{catalog::Catalog, parent};

/// The gRPC service of pools.
pub(crate) struct PoolService {
    pub(crate) db: PgPool,
    pub(crate) catalog: Catalog,
    /// Encrypts the secrets.
    pub(crate) seal: Seal,
}

#[tonic::async_trait]
impl pool_service_server::PoolService for PoolService {
    type ListPoolsStream = Batches<PoolBatch>;

    async fn list_pools(
        &self,
        request: Request<ListPoolsRequest>,
    ) -> Result<Response<Self::ListPoolsStream>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project =
            parent::project(&self.db, &self.catalog, &caller, &request.project_id).await?;
        let (db, customer) = (self.db.clone(), caller.customer);
        answer(request.page, move |slice| {
            let db = db.clone();
            async move { Ok(store::list(&db, customer, project, &slice).await?.map(shown)) }
        })
        .await
    }

    async fn get_pool(&self, request: Request<GetPoolRequest>) -> Result<Response<Pool>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let id = PoolId::from_path(&request.id)?;
        let project =
            parent::project(&self.db, &self.catalog, &caller, &request.project_id).await?;
        Ok(Response::new(shown(store::get(&self.db, caller.customer, project, id).await?)))
    }

    async fn create_pool(
        &self,
        request: Request<CreatePoolRequest>,
    ) -> Result<Response<Pool>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let input = rules::valid(request.pool.unwrap_or_default())?;
        let project =
            parent::project(&self.db, &self.catalog, &caller, &request.project_id).await?;
        let id = PoolId::new();
        let values = self.contents(id).store(input.values, &[])?;
        let mut tx = begin(&self.db).await?;
        let pool =
            store::insert(&mut tx, caller.customer, project, id, &input.name, &values).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(shown(pool)))
    }

    async fn update_pool(
        &self,
        request: Request<UpdatePoolRequest>,
    ) -> Result<Response<Pool>, Status> {
        let customer = Caller::of(&request)?.customer;
        let UpdatePoolRequest { project_id, id, data_version, changes, fields } =
            request.into_inner();
        let project = ProjectId::from_path(&project_id)?;
        let id = PoolId::from_path(&id)?;
        let change = Change { data_version, changes, fields };
        let mut tx = begin(&self.db).await?;
        let stored = store::lock(&mut tx, customer, project, id).await?;
        pooled::lock(&mut tx, customer, id).await?;
        let current = shown(stored.clone());
        let input = rules::valid(change.apply("pool", &current, &current.data_version)?)?;
        let values = self.contents(id).store(input.values, &stored.values)?;
        let pool = store::update(&mut tx, customer, project, id, &input.name, &values).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(shown(pool)))
    }

    async fn delete_pool(
        &self,
        request: Request<DeletePoolRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = PoolId::from_path(&request.id)?;
        let mut tx = begin(&self.db).await?;
        store::lock(&mut tx, customer, project, id).await?;
        pooled::lock(&mut tx, customer, id).await?;
        let is_needed = schedule::store::needs_pool(&mut *tx, customer, project, id).await?;
        let in_use = store::get(&mut *tx, customer, project, id).await?.in_use;
        if in_use > 0 || is_needed {
            let reason = "tests that are queued or running need the pool: wait for their end, or \
                          cancel their executions"
                .to_owned();
            return Err(Fault::Conflict { code: "pool_in_use", reason }.into());
        }
        store::delete(&mut tx, customer, project, id).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(()))
    }
}

impl PoolService {
    fn contents(&self, pool: PoolId) -> Contents<'_> {
        Contents { seal: &self.seal, pool }
    }
}
