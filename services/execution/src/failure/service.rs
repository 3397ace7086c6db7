//! The gRPC service of failures.

use std::sync::Arc;

use assay_auth::Caller;
use assay_ledger::execution::store::find;
use assay_proto::{
    ExecutionId, ProjectId, ResultChange,
    execution::{FailureBatch, ListFailuresRequest, failure_service_server},
    name_of,
};
use assay_runtime::list::{Batches, answer};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use super::list;

/// The gRPC service of failures.
pub(crate) struct FailureService {
    pub(crate) db: PgPool,
}

#[tonic::async_trait]
impl failure_service_server::FailureService for FailureService {
    type ListFailuresStream = Batches<FailureBatch>;

    async fn list_failures(
        &self,
        request: Request<ListFailuresRequest>,
    ) -> Result<Response<Self::ListFailuresStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path_if_any(request.project_id.as_deref())?;
        let id = ExecutionId::from_path(&request.execution_id)?;
        let state = Arc::new(find(&self.db, customer, project, id).await?);
        let change = Some(request.change()).filter(|change| *change != ResultChange::Unspecified);
        let (db, change) = (self.db.clone(), change.map(name_of));
        answer(request.page, move |slice| {
            let (db, state, change) = (db.clone(), state.clone(), change.clone());
            async move { list::list(&db, customer, &state, change.as_deref(), &slice).await }
        })
        .await
    }
}
