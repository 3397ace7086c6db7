//! Shared executions: what readers with a share link see.

use std::sync::Arc;

use assay_auth::hash_of_secret;
use assay_fair::Shares;
use assay_ledger::execution::store::find;
use assay_proto::{
    Fault, ResultChange, TestReportId,
    execution::{
        GetSharedExecutionRequest, GetSharedInstanceRequest, ListSharedFailuresRequest,
        ListSharedReportsRequest, ListTestReportsRequest, SharedExecution, SharedFailureBatch,
        SharedInstance, SharedReportBatch, shared_execution_service_server,
    },
    name_of,
};
use assay_rpc::list::{Batches, answer};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use super::{
    instance,
    store::{self, Shared},
    view,
};
use crate::{
    artifact::Artifacts,
    console_link::ConsoleLinks,
    execution::{summary, verdict},
    failure::{self, list::Filter},
    test_report::entries,
};

/// The gRPC service of shared executions. A call takes a share of the database from the customer of
/// the execution, since the caller has no customer.
pub(crate) struct SharedExecutionService {
    pub(crate) db: PgPool,
    pub(crate) shares: Shares,
    pub(crate) artifacts: Artifacts,
    pub(crate) console: ConsoleLinks,
}

impl SharedExecutionService {
    /// Returns the execution of a secret. All secrets without one have the same fault.
    async fn shared(&self, token: &str) -> Result<Shared, Fault> {
        store::find(&self.db, &hash_of_secret(token)).await
    }
}

#[tonic::async_trait]
impl shared_execution_service_server::SharedExecutionService for SharedExecutionService {
    type ListSharedFailuresStream = Batches<SharedFailureBatch>;
    type ListSharedReportsStream = Batches<SharedReportBatch>;

    async fn get_shared_execution(
        &self,
        request: Request<GetSharedExecutionRequest>,
    ) -> Result<Response<SharedExecution>, Status> {
        let Shared { customer_id, execution_id, expires_at, .. } =
            self.shared(&request.get_ref().token).await?;
        let _share = self.shares.acquire(customer_id).await?;
        let summary = summary::of(&self.db, &self.console, customer_id, None, execution_id).await?;
        let verdict =
            verdict::of_summary(&self.db, customer_id, execution_id, summary.clone()).await?;
        Ok(Response::new(view::execution(summary, &verdict, expires_at)))
    }

    async fn list_shared_failures(
        &self,
        request: Request<ListSharedFailuresRequest>,
    ) -> Result<Response<Self::ListSharedFailuresStream>, Status> {
        let request = request.into_inner();
        let Shared { customer_id, execution_id, .. } = self.shared(&request.token).await?;
        let change = Some(request.change()).filter(|change| *change != ResultChange::Unspecified);
        let muted = request.muted;
        let change = change.map(name_of);
        let filter = Filter { change, muted, unreviewed: false, fingerprint: None };
        let state = find(&self.db, customer_id, None, execution_id).await?;
        let context = Arc::new((state, filter));
        let (db, shares) = (self.db.clone(), self.shares.clone());
        answer(request.page, move |slice| {
            let (db, shares, context) = (db.clone(), shares.clone(), context.clone());
            async move {
                let _share = shares.acquire(customer_id).await?;
                let (state, filter) = &*context;
                let causes = failure::list::list(&db, customer_id, state, filter, &slice).await?;
                Ok(causes.map(|cause| cause.map(view::failure)))
            }
        })
        .await
    }

    async fn list_shared_reports(
        &self,
        request: Request<ListSharedReportsRequest>,
    ) -> Result<Response<Self::ListSharedReportsStream>, Status> {
        let ListSharedReportsRequest { token, result, change, fingerprint, page, muted } =
            request.into_inner();
        let filter =
            ListTestReportsRequest { result, change, fingerprint, muted, ..Default::default() };
        let filter = entries::Filter::of(&filter)?;
        let Shared { customer_id, execution_id, .. } = self.shared(&token).await?;
        let state = find(&self.db, customer_id, None, execution_id).await?;
        let context = Arc::new((state, filter));
        let (db, shares) = (self.db.clone(), self.shares.clone());
        answer(page, move |slice| {
            let (db, shares, context) = (db.clone(), shares.clone(), context.clone());
            async move {
                let _share = shares.acquire(customer_id).await?;
                let (state, filter) = &*context;
                let entries = entries::list(&db, customer_id, state, filter, &slice).await?;
                Ok(entries.map(view::report))
            }
        })
        .await
    }

    async fn get_shared_instance(
        &self,
        request: Request<GetSharedInstanceRequest>,
    ) -> Result<Response<SharedInstance>, Status> {
        let GetSharedInstanceRequest { token, test_report_id, instance_nr } = request.into_inner();
        let report = TestReportId::from_path(&test_report_id)?;
        let Shared { id, customer_id, execution_id, .. } = self.shared(&token).await?;
        let _share = self.shares.acquire(customer_id).await?;
        let state = find(&self.db, customer_id, None, execution_id).await?;
        let entries = entries::of_ids(&self.db, customer_id, &state, &[report.0]).await?;
        let entry = entries.into_iter().next().ok_or(Fault::NotFound("test report"))?;
        let found = instance::find(&self.db, customer_id, report, instance_nr).await?;
        let instance = found.read(&self.db, &self.artifacts, customer_id, report, id).await?;
        Ok(Response::new(view::instance(entry, found.count, instance)))
    }
}
