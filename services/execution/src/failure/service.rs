//! The gRPC service of failures.

use std::sync::Arc;

use assay_auth::Caller;
use assay_fingerprint::Fingerprint;
use assay_ledger::execution::store::find;
use assay_proto::{
    ExecutionId, Fault, ProjectId, ResultChange,
    execution::{FailureBatch, ListFailuresRequest, failure_service_server},
    name_of,
};
use assay_rpc::list::{Batches, answer};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use super::list::{self, Filter};

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
        let state = find(&self.db, customer, project, id).await?;
        let change = Some(request.change()).filter(|change| *change != ResultChange::Unspecified);
        let fingerprint = request.fingerprint.as_deref().map(str::parse::<Fingerprint>).transpose();
        let fingerprint = fingerprint
            .map_err(|_| Fault::invalid("fingerprint", "must be the fingerprint of a failure"))?;
        let filter = Filter {
            change: change.map(name_of),
            muted: request.muted,
            unreviewed: request.unreviewed,
            fingerprint,
        };
        let (db, context) = (self.db.clone(), Arc::new((state, filter)));
        answer(request.page, move |slice| {
            let (db, context) = (db.clone(), context.clone());
            async move { list::list(&db, customer, &context.0, &context.1, &slice).await }
        })
        .await
    }
}
