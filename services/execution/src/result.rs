//! Results: what test tools report, to an execution that runs or as one that has run.

mod append;
mod export;
mod json;
mod link;
mod rules;
mod upload;

use assay_auth::Caller;
use assay_proto::{
    ExecutionId, Fault, ProjectId, TestSetId,
    execution::{
        Execution, ExportResultsRequest, ReportResultsRequest, ReportedResults, ResultsBatch,
        UploadResultsRequest, result_service_server,
    },
};
use assay_runtime::{body::Piece, list::Batches};
use futures::{StreamExt, TryStreamExt, stream};
use prost::Message;
use tonic::{Request, Response, Status, Streaming};

pub(crate) use self::{
    append::{place_in, record},
    json::{Source, read as read_json},
};
use crate::execution::{ExecutionService, once::Once, rules::check_tags, store};

/// Answers calls that bring results.
pub(crate) struct ResultService {
    pub(crate) executions: ExecutionService,
}

/// A call's first message, which has a target.
pub(crate) async fn first<T>(messages: &mut Streaming<T>) -> Result<T, Status> {
    let missing = || Status::invalid_argument("the call has no messages");
    messages.message().await?.ok_or_else(missing)
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
        let db = self.executions.db.clone();
        let run = store::get(&db, customer, project, id).await?;
        let file = export::file(db, customer, id, &run).await?;
        Ok(Response::new(Box::pin(file.map_err(Status::from))))
    }

    async fn report_results(
        &self,
        request: Request<Streaming<ReportResultsRequest>>,
    ) -> Result<Response<ReportedResults>, Status> {
        let caller = Caller::of(&request)?;
        let mut messages = request.into_inner();
        let mut head = first(&mut messages).await?;
        let target = head.target.take().unwrap_or_default();
        let project = ProjectId::from_path(&target.project_id)?;
        let execution = ExecutionId::from_path(&target.execution_id)?;
        // So that nobody sends megabytes for nothing.
        let limits = &self.executions.limits;
        let found = store::get(&self.executions.db, caller.customer, project, execution);
        limits.look(caller.customer, found).await?;

        let pieces = stream::iter([Ok(head)]).chain(messages);
        let pieces =
            pieces.map_ok(|part| Piece { chunk: part.chunk, last: part.last, next_file: false });
        let parse = move |body| json::read(body, Source::Execution { lines: target.lines });
        let (results, memory) = limits.intake.read(caller.customer, pieces, parse).await?;
        let writing = limits.write(caller.customer, execution.0).await?;
        let mut tx = self.executions.begin().await?;
        let reported =
            append::append(&mut tx, caller.customer, project, execution, results).await?;
        tx.commit().await.map_err(Fault::from)?;
        drop((writing, memory));
        Ok(Response::new(reported))
    }

    async fn upload_results(
        &self,
        request: Request<Streaming<UploadResultsRequest>>,
    ) -> Result<Response<Self::UploadResultsStream>, Status> {
        let caller = Caller::of(&request)?;
        let mut messages = request.into_inner();
        let mut head = first(&mut messages).await?;
        let mut target = head.target.take().unwrap_or_default();
        let project = ProjectId::from_path(&target.project_id)?;
        let set = TestSetId::from_path(&target.test_set_id)?;
        if let Some(violation) = check_tags("tags", target.tags.as_deref()) {
            return Err(Fault::Invalid(vec![violation]).into());
        }
        let key = Once::key(target.idempotency_key.take())?;

        let pieces = stream::iter([Ok(head)]).chain(messages);
        let pieces = pieces.map_ok(|part| Piece {
            chunk: part.chunk,
            next_file: part.next_file,
            last: part.last,
        });
        let ExecutionService { db, catalog, limits, .. } = &self.executions;
        let read = limits.intake.read(caller.customer, pieces, upload::read).await?;
        let (upload::Uploaded { cases, digest }, mut memory) = read;
        let once = key.map(|key| Once { key, request: [target.encode_to_vec(), digest].concat() });
        let make = async {
            let (snapshot, more) =
                upload::adopt(catalog, &caller, &target, &cases, &limits.intake).await?;
            memory.add(more);
            let writing = limits.write(caller.customer, set.0).await?;
            let mut tx = self.executions.begin().await?;
            let once = once.as_ref();
            let id = upload::store(&mut tx, &caller, target, snapshot, cases, once).await?;
            tx.commit().await.map_err(Fault::from)?;
            drop((writing, memory));
            Ok::<_, Status>(id)
        };
        let id = Once::start(once.as_ref(), db, &caller, make).await?;
        self.executions.details(caller.customer, project, id).await
    }
}
