//! The gRPC service of results.

use assay_auth::Caller;
use assay_database::begin;
use assay_ledger::{
    execution::{
        rules::{IdempotentRequest, check_idempotency_key, check_reporter, require_open},
        store,
    },
    origin::OriginNames,
    take_origin,
};
use assay_proto::{
    ExecutionId, Fault, ProjectId, TestSetId,
    catalog::SnapshotTarget,
    execution::{
        AddReportRequest, Execution, ExportResultsRequest, ReportResultsRequest, ReportedResults,
        ResultsBatch, UploadResultsRequest, result_service_server,
    },
};
use assay_records::Check;
use assay_rpc::{
    body::{Body, Memory, open},
    list::Batches,
};
use futures::TryStreamExt;
use prost::Message;
use tonic::{Request, Response, Status, Streaming};

use super::{
    Added, ResultService,
    adding::repeated,
    adoption, export,
    file::{self, Options, Report},
    json::{self, Source},
    rules::check_name,
    upload,
};
use crate::{
    artifact::staged::{self},
    execution::{details::details, idempotency::start_once},
};

#[tonic::async_trait]
impl result_service_server::ResultService for ResultService {
    type UploadResultsStream = Batches<Execution>;
    type ExportResultsStream = Batches<ResultsBatch>;

    async fn export_results(
        &self,
        request: Request<ExportResultsRequest>,
    ) -> Result<Response<Self::ExportResultsStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path_unless_empty(&request.project_id)?;
        let id = ExecutionId::from_path(&request.execution_id)?;
        let state = store::find(&self.db, customer, project, id).await?;
        let file = export::file(self.db.clone(), customer, id, &state, request.format()).await?;
        Ok(Response::new(Box::pin(file.map_err(Status::from))))
    }

    async fn report_results(
        &self,
        request: Request<Streaming<ReportResultsRequest>>,
    ) -> Result<Response<ReportedResults>, Status> {
        let caller = Caller::of(&request)?;
        let customer = caller.customer;
        let (target, pieces) = open(request.into_inner()).await?;
        let project = ProjectId::from_path_unless_empty(&target.project_id)?;
        let execution = ExecutionId::from_path(&target.execution_id)?;
        // Fail before the client sends megabytes in vain.
        let found = store::find(&self.db, customer, project, execution);
        let state = self.limits.read(customer, found).await?;
        let project = ProjectId::from_record(&state.execution.project_id)?;

        let source = Source::Execution { lines: target.lines };
        let parse =
            move |body: Body, memory: &mut Memory| json::read(body.into_file(), source, memory);
        let (results, memory) = self.limits.intake.read(customer, pieces, parse).await?;
        let added = Added { results, ..Added::default() };
        Ok(Response::new(self.add(&caller, project, execution, added, memory).await?))
    }

    async fn add_report(
        &self,
        request: Request<Streaming<AddReportRequest>>,
    ) -> Result<Response<ReportedResults>, Status> {
        let caller = Caller::of(&request)?;
        let (target, pieces) = open(request.into_inner()).await?;
        let project = ProjectId::from_path_unless_empty(&target.project_id)?;
        let execution = ExecutionId::from_path(&target.execution_id)?;
        let (reporter, variant) = (target.reporter, target.variant.unwrap_or_default());
        let is_partial = target.partial.unwrap_or_default();
        let mut check = Check::default();
        if let Some(reporter) = &reporter {
            check_reporter("reporter", reporter, &mut check);
        }
        check_name("variant", &variant, &mut check);
        check.done()?;
        let found = store::find(&self.db, caller.customer, project, execution);
        let state = self.limits.read(caller.customer, found).await?;
        let project = ProjectId::from_record(&state.execution.project_id)?;
        require_open(&state)?;

        let parse = move |body, memory: &mut Memory| {
            let options = Options { reporter: reporter.as_deref(), variant: &variant, is_partial };
            file::read(body, options, memory)
        };
        let (report, memory) = self.limits.intake.read(caller.customer, pieces, parse).await?;
        let Report { results, digest, attachments, notes } = report;
        let known = store::has_upload(&self.db, caller.customer, execution, &digest);
        if self.limits.read(caller.customer, known).await? {
            return Ok(Response::new(repeated(results.len())));
        }
        let added = Added { results, digest: Some(digest), attachments, notes };
        Ok(Response::new(self.add(&caller, project, execution, added, memory).await?))
    }

    async fn upload_results(
        &self,
        request: Request<Streaming<UploadResultsRequest>>,
    ) -> Result<Response<Self::UploadResultsStream>, Status> {
        let caller = Caller::of(&request)?;
        let (mut target, pieces) = open(request.into_inner()).await?;
        let project = ProjectId::from_path(&target.project_id)?;
        let set = TestSetId::from_path(&target.test_set_id)?;
        let key = target.idempotency_key.take();
        key.as_deref().map(check_idempotency_key).transpose()?;
        let request = target.encode_to_vec();
        let origin = take_origin!(target);
        let mut check = Check::default();
        origin.check(&OriginNames::PARAMETERS, &mut check);
        check.done()?;

        let Self { db, catalog, limits, artifacts, console } = self;
        let is_partial = target.partial.unwrap_or_default();
        let options = Options { reporter: Some(""), variant: "", is_partial };
        let parse = move |body, memory: &mut Memory| file::read(body, options, memory);
        let read = limits.intake.read(caller.customer, pieces, parse).await?;
        let (Report { results, digest, attachments, notes }, mut memory) = read;
        let idempotent =
            key.map(|key| IdempotentRequest { key, request: [request, digest].concat() });
        let store = async {
            let target = SnapshotTarget {
                project_id: target.project_id,
                test_set_id: target.test_set_id,
                subject_id: target.subject_id,
                environment_id: target.environment_id,
            };
            let cases = adoption::named(&results);
            let (snapshot, more) =
                adoption::adopt(catalog, &caller, target, cases, &limits.intake).await?;
            memory.add(more);
            let id = store::next_id(db, caller.customer, set).await?;
            let staged = artifacts.receive(caller.customer, id, attachments).await?;
            let writer = limits.write(caller.customer, set.0).await?;
            let mut tx = begin(db).await?;
            let (target, idempotent) = ((id, project, set), idempotent.as_ref());
            upload::store(&mut tx, &caller, target, origin, snapshot, results, idempotent).await?;
            staged::insert(&mut tx, caller.customer, id, &staged).await?;
            store::add_notes(&mut tx, caller.customer, id, &notes).await?;
            tx.commit().await.map_err(Fault::from)?;
            drop((writer, memory));
            Ok::<_, Status>(id)
        };
        let id =
            start_once((db, &limits.quota), &caller, idempotent.as_ref(), Box::pin(store)).await?;
        details(db, console, caller.customer, project, id).await
    }
}
