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
use assay_runtime::{
    Turns,
    body::{self, Piece},
    list::Batches,
};
use futures::{StreamExt, TryStreamExt, stream};
use tonic::{Request, Response, Status, Streaming};

pub(crate) use self::{
    append::{place_in, record},
    json::{Source, read as read_json},
};
use crate::execution::{ExecutionService, rules::check_tags, store};

/// How many bodies are read at once; each takes a thread and some mebibytes.
const READERS: usize = 32;

/// How many transactions write results at once: half of the connections, so that those who read
/// don't wait for those who report. More would not be faster.
const WRITERS: usize = 4;

/// Answers calls that bring results.
pub(crate) struct ResultService {
    pub(crate) executions: ExecutionService,
    pub(crate) turns: Reporting,
}

/// The turns of all who bring results.
#[derive(Clone)]
pub(crate) struct Reporting {
    pub(crate) readers: Turns,
    pub(crate) writers: Turns,
}

impl Reporting {
    pub(crate) fn new() -> Self {
        Self { readers: Turns::new(READERS), writers: Turns::new(WRITERS) }
    }
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
        let project = ProjectId::named(&project_id)?;
        let id = ExecutionId::named(&execution_id)?;
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
        let project = ProjectId::named(&target.project_id)?;
        let execution = ExecutionId::named(&target.execution_id)?;
        // So that nobody sends megabytes for nothing.
        store::get(&self.executions.db, caller.customer, project, execution).await?;

        let reading = self.turns.readers.take().await?;
        let pieces = stream::iter([Ok(head)]).chain(messages);
        let pieces =
            pieces.map_ok(|part| Piece { chunk: part.chunk, last: part.last, next_file: false });
        let results = body::read(pieces, move |body| {
            json::read(body, Source::Execution { lines: target.lines })
        })
        .await?;
        let writing = self.turns.writers.take().await?;
        let mut tx = self.executions.begin().await?;
        let reported =
            append::append(&mut tx, caller.customer, project, execution, results).await?;
        tx.commit().await.map_err(Fault::from)?;
        drop((reading, writing));
        Ok(Response::new(reported))
    }

    async fn upload_results(
        &self,
        request: Request<Streaming<UploadResultsRequest>>,
    ) -> Result<Response<Self::UploadResultsStream>, Status> {
        let caller = Caller::of(&request)?;
        let mut messages = request.into_inner();
        let mut head = first(&mut messages).await?;
        let target = head.target.take().unwrap_or_default();
        let project = ProjectId::named(&target.project_id)?;
        TestSetId::named(&target.test_set_id)?;
        if let Some(violation) = check_tags("tags", target.tags.as_deref()) {
            return Err(Fault::Invalid(vec![violation]).into());
        }

        let reading = self.turns.readers.take().await?;
        let pieces = stream::iter([Ok(head)]).chain(messages);
        let pieces = pieces.map_ok(|part| Piece {
            chunk: part.chunk,
            next_file: part.next_file,
            last: part.last,
        });
        let cases = body::read(pieces, upload::read).await?;
        let snapshot = upload::adopt(&self.executions.catalog, &caller, &target, &cases).await?;
        let writing = self.turns.writers.take().await?;
        let mut tx = self.executions.begin().await?;
        let id = upload::store(&mut tx, &caller, target, snapshot, cases).await?;
        tx.commit().await.map_err(Fault::from)?;
        drop((reading, writing));
        self.executions.details(caller.customer, project, id).await
    }
}
