//! Results that test tools report, to a running execution or as a completed one.

mod export;
pub(crate) mod json;
mod link;
pub(crate) mod resolve;
mod rules;
mod upload;

use assay_auth::Caller;
use assay_proto::{
    CustomerId, ExecutionId, Fault, ProjectId, TestSetId,
    execution::{
        Execution, ExportResultsRequest, ReportResultsRequest, ReportedResults, ResultsBatch,
        UploadResultsRequest, result_service_server,
    },
};
use assay_records::Check;
use assay_runtime::{begin, body::open, list::Batches};
use futures::TryStreamExt;
use prost::Message;
use sqlx::{PgPool, PgTransaction};
use tonic::{Request, Response, Status, Streaming};

use self::{json::Source, rules::Reported};
use crate::{
    catalog::Catalog,
    execution::{
        details::details,
        idempotency::start_once,
        rules::{IdempotentRequest, check_idempotency_key, check_tags, require_external},
        store,
    },
    limits::IngestLimits,
    settle::add_instances,
};

/// The gRPC service of results.
pub(crate) struct ResultService {
    pub(crate) db: PgPool,
    pub(crate) catalog: Catalog,
    pub(crate) limits: IngestLimits,
}

#[tonic::async_trait]
impl result_service_server::ResultService for ResultService {
    type UploadResultsStream = Batches<Execution>;
    type ExportResultsStream = Batches<ResultsBatch>;

    async fn export_results(
        &self,
        request: Request<ExportResultsRequest>,
    ) -> Result<Response<Self::ExportResultsStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let ExportResultsRequest { project_id, execution_id } = request.into_inner();
        let project = ProjectId::from_path(&project_id)?;
        let id = ExecutionId::from_path(&execution_id)?;
        let state = store::get(&self.db, customer, project, id).await?;
        let file = export::file(self.db.clone(), customer, id, &state).await?;
        Ok(Response::new(Box::pin(file.map_err(Status::from))))
    }

    async fn report_results(
        &self,
        request: Request<Streaming<ReportResultsRequest>>,
    ) -> Result<Response<ReportedResults>, Status> {
        let customer = Caller::of(&request)?.customer;
        let (target, pieces) = open(request.into_inner()).await?;
        let project = ProjectId::from_path(&target.project_id)?;
        let execution = ExecutionId::from_path(&target.execution_id)?;
        // Fail before the client sends megabytes in vain.
        let found = store::get(&self.db, customer, project, execution);
        self.limits.read(customer, found).await?;

        let parse = move |body| json::read(body, Source::Execution { lines: target.lines });
        let (results, memory) = self.limits.intake.read(customer, pieces, parse).await?;
        let writer = self.limits.write(customer, execution.0).await?;
        let mut tx = begin(&self.db).await?;
        let reported = report(&mut tx, customer, project, execution, results).await?;
        tx.commit().await.map_err(Fault::from)?;
        drop((writer, memory));
        Ok(Response::new(reported))
    }

    async fn upload_results(
        &self,
        request: Request<Streaming<UploadResultsRequest>>,
    ) -> Result<Response<Self::UploadResultsStream>, Status> {
        let caller = Caller::of(&request)?;
        let (mut target, pieces) = open(request.into_inner()).await?;
        let project = ProjectId::from_path(&target.project_id)?;
        let set = TestSetId::from_path(&target.test_set_id)?;
        let mut check = Check::default();
        check_tags("tags", target.tags.as_deref(), &mut check);
        check.done()?;
        let key = target.idempotency_key.take();
        key.as_deref().map(check_idempotency_key).transpose()?;

        let Self { db, catalog, limits } = self;
        let read = limits.intake.read(caller.customer, pieces, upload::read).await?;
        let ((cases, digest), mut memory) = read;
        let idempotent = key.map(|key| IdempotentRequest {
            key,
            request: [target.encode_to_vec(), digest].concat(),
        });
        let store = async {
            let (snapshot, more) =
                upload::adopt_cases(catalog, &caller, &target, &cases, &limits.intake).await?;
            memory.add(more);
            let writer = limits.write(caller.customer, set.0).await?;
            let mut tx = begin(db).await?;
            let (target, tags) = ((project, set), target.tags);
            let idempotent = idempotent.as_ref();
            let id =
                upload::store(&mut tx, &caller, target, tags, snapshot, cases, idempotent).await?;
            tx.commit().await.map_err(Fault::from)?;
            drop((writer, memory));
            Ok::<_, Status>(id)
        };
        let id = start_once(db, &caller, idempotent.as_ref(), store).await?;
        details(db, caller.customer, project, id).await
    }
}

/// Adds results to a locked external execution, all or none.
async fn report(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    execution: ExecutionId,
    results: Vec<Reported>,
) -> Result<ReportedResults, Fault> {
    let sent = results.len();
    let mut state = store::lock(tx, customer, project, execution).await?;
    require_external(&state)?;
    let mut reports = resolve::reports_of(tx, customer, execution, &results).await?;
    let instances = resolve::into_reports(results, &reports)?;
    let accepted = add_instances(tx, customer, &mut state, &mut reports, instances).await?;
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    Ok(ReportedResults { accepted: count(accepted), duplicates: count(sent - accepted) })
}
