//! Results that test tools report, to a running execution or as a completed one.

pub(crate) mod adoption;
pub(crate) mod attachments;
mod chunks;
mod classification;
mod export;
pub(crate) mod file;
mod folder;
pub(crate) mod json;
pub(crate) mod link;
pub(crate) mod resolve;
mod results;
pub(crate) mod rules;
mod upload;

use std::mem::take;

use assay_auth::Caller;
use assay_proto::{
    CustomerId, ExecutionId, Fault, ProjectId, TestSetId,
    catalog::{Snapshot, SnapshotTarget},
    execution::{
        AddReportRequest, Execution, ExportResultsRequest, ReportResultsRequest, ReportedResults,
        ResultsBatch, UploadResultsRequest, result_service_server,
    },
};
use assay_records::Check;
use assay_runtime::{
    begin,
    body::{Body, Memory, open},
    list::Batches,
};
use futures::TryStreamExt;
use prost::Message;
use sqlx::{PgPool, PgTransaction};
use tonic::{Request, Response, Status, Streaming};

use self::{
    file::{Options, Report},
    json::Source,
    rules::{Reported, check_name},
};
use crate::{
    artifact::{
        Artifacts,
        staged::{self, NewFile, Staged},
    },
    catalog::Catalog,
    execution::{
        details::details,
        idempotency::start_once,
        origin::{Origin, OriginNames},
        rules::{
            IdempotentRequest, check_idempotency_key, check_reporter, no_new_results,
            require_external, require_open,
        },
        store,
    },
    limits::IngestLimits,
    page::Pages,
    quota::Kind,
    settle::add_results,
};

/// The gRPC service of results.
#[derive(Clone)]
pub(crate) struct ResultService {
    pub(crate) db: PgPool,
    pub(crate) catalog: Catalog,
    pub(crate) limits: IngestLimits,
    pub(crate) artifacts: Artifacts,
    pub(crate) pages: Pages,
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
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = ExecutionId::from_path(&request.execution_id)?;
        let state = store::get(&self.db, customer, project, id).await?;
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
        let project = ProjectId::from_path(&target.project_id)?;
        let execution = ExecutionId::from_path(&target.execution_id)?;
        // Fail before the client sends megabytes in vain.
        let found = store::get(&self.db, customer, project, execution);
        self.limits.read(customer, found).await?;

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
        let project = ProjectId::from_path(&target.project_id)?;
        let execution = ExecutionId::from_path(&target.execution_id)?;
        let (reporter, variant) = (target.reporter, target.variant.unwrap_or_default());
        let is_partial = target.partial.unwrap_or_default();
        let mut check = Check::default();
        if let Some(reporter) = &reporter {
            check_reporter("reporter", reporter, &mut check);
        }
        check_name("variant", &variant, &mut check);
        check.done()?;
        let found = store::get(&self.db, caller.customer, project, execution);
        require_open(&self.limits.read(caller.customer, found).await?)?;

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
        let origin = Origin {
            tags: target.tags.take(),
            branch: target.branch.take(),
            commit: target.commit.take(),
            build: target.build.take(),
            ci_url: target.ci_url.take(),
        };
        let mut check = Check::default();
        origin.check(&OriginNames::PARAMETERS, &mut check);
        check.done()?;

        let Self { db, catalog, limits, artifacts, pages } = self;
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
        details(db, pages, caller.customer, project, id).await
    }
}

/// Results for an execution, and the digest of the report that they are from.
#[derive(Default)]
pub(crate) struct Added {
    pub(crate) results: Vec<Reported>,
    pub(crate) digest: Option<Vec<u8>>,
    /// Its attachments.
    pub(crate) attachments: Vec<NewFile>,
    /// Notes on it.
    pub(crate) notes: Vec<String>,
}

impl ResultService {
    /// Adds results to an external execution, all or none.
    pub(crate) async fn add(
        &self,
        caller: &Caller,
        project: ProjectId,
        execution: ExecutionId,
        mut added: Added,
        mut memory: Memory,
    ) -> Result<ReportedResults, Status> {
        let customer = caller.customer;
        let more = self.prepare(caller, project, execution, &mut added, &mut memory).await?;
        let writer = self.limits.write(customer, execution.0).await?;
        let mut tx = begin(&self.db).await?;
        let reported = report(&mut tx, customer, project, execution, added, more).await?;
        tx.commit().await.map_err(Fault::from)?;
        drop((writer, memory));
        Ok(reported)
    }

    /// Has the catalog adopt test cases that an open execution does not have, and stores the files of
    /// results.
    pub(crate) async fn prepare(
        &self,
        caller: &Caller,
        project: ProjectId,
        execution: ExecutionId,
        added: &mut Added,
        memory: &mut Memory,
    ) -> Result<(Option<Snapshot>, Vec<Staged>), Status> {
        let Self { db, catalog, limits, artifacts, .. } = self;
        let customer = caller.customer;
        if let Some(digest) = &added.digest {
            limits.quota.claim(customer, Kind::Keys, digest.len()).await?;
        }
        let state = limits.read(customer, store::get(db, customer, project, execution)).await?;
        let (mut adopted, mut staged) = (None, Vec::new());
        if state.execution.is_open && !state.has_ended() {
            let results = &added.results;
            let unknown =
                adoption::adopt_unknown(db, catalog, caller, &state, results, &limits.intake);
            if let Some((snapshot, more)) = unknown.await? {
                memory.add(more);
                adopted = Some(snapshot);
            }
            let attachments = take(&mut added.attachments);
            staged = artifacts.receive(customer, execution, attachments).await?;
        }
        Ok((adopted, staged))
    }
}

/// Adds results to an external execution, which it locks, all or none.
pub(crate) async fn report(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    execution: ExecutionId,
    Added { mut results, digest, notes, .. }: Added,
    (adopted, staged): (Option<Snapshot>, Vec<Staged>),
) -> Result<ReportedResults, Fault> {
    let sent = results.len();
    let mut state = store::lock(tx, customer, project, execution).await?;
    require_external(&state)?;
    if let Some(digest) = &digest
        && !store::remember_upload(tx, customer, execution, digest).await?
    {
        return Ok(repeated(sent));
    }
    staged::insert(tx, customer, execution, &staged).await?;
    if let Some(adopted) = adopted.filter(|_| !state.has_ended()) {
        adoption::insert_reports(tx, customer, &mut state, adopted, &mut results).await?;
    }
    let mut reports = resolve::reports_of(tx, customer, execution, &results).await?;
    let results = match resolve::to_reports(results, &reports, state.execution.is_open) {
        // It would have adopted their test cases before.
        Err(_) if state.execution.is_open && state.has_ended() => return Err(no_new_results()),
        resolved => resolved?,
    };
    let continues = digest.is_some();
    let accepted = add_results(tx, customer, &mut state, &mut reports, results, continues).await?;
    store::add_notes(tx, customer, execution, &notes).await?;
    Ok(ReportedResults { accepted: count(accepted), duplicates: count(sent - accepted), notes })
}

/// The answer to results that were all reported before.
fn repeated(sent: usize) -> ReportedResults {
    ReportedResults { duplicates: count(sent), ..ReportedResults::default() }
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
