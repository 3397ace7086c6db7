//! Imports: test cases written by the thousand, all or none.

mod apply;
mod rows;
mod store;

use assay_auth::Caller;
use assay_proto::{
    CustomerId, Fault, ProjectId,
    catalog::{
        ImportTestCasesRequest, ImportedTestCase, ImportedTestCaseBatch, import_service_server,
    },
};
use assay_runtime::{
    Shares, begin,
    body::{Intake, Piece},
    list::Batches,
};
use futures::{StreamExt, TryStreamExt, stream};
use sqlx::PgPool;
use tonic::{Request, Response, Status, Streaming};

use self::rows::Row;
use crate::project;

/// How many mebibytes imports take at once, as they are received and as they are written.
const MEMORY: usize = 128;

/// How many imports are written at once.
const WRITTEN: usize = 2;

/// How many rows one message answers.
const ROWS_IN_MESSAGE: usize = 500;

pub(crate) struct ImportService {
    db: PgPool,
    intake: Intake,
    written: Shares,
}

impl ImportService {
    pub(crate) fn new(db: PgPool) -> Self {
        Self { db, intake: Intake::new(MEMORY), written: Shares::new(WRITTEN) }
    }
}

#[tonic::async_trait]
impl import_service_server::ImportService for ImportService {
    type ImportTestCasesStream = Batches<ImportedTestCaseBatch>;

    async fn import_test_cases(
        &self,
        request: Request<Streaming<ImportTestCasesRequest>>,
    ) -> Result<Response<Self::ImportTestCasesStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let mut messages = request.into_inner();
        let mut head = messages.message().await?.unwrap_or_default();
        let target = head.target.take().unwrap_or_default();
        let project = ProjectId::from_path(&target.project_id)?;
        // So that nobody sends megabytes for nothing.
        project::store::find(&self.db, customer, project).await?;

        let pieces = stream::iter([Ok(head)]).chain(messages);
        let pieces =
            pieces.map_ok(|part| Piece { chunk: part.chunk, last: part.last, next_file: false });
        // A slow body holds the memory of what was sent, and nothing that others need.
        let parse = move |body| rows::read(body, &target);
        let (rows, _memory) = self.intake.read(customer, pieces, parse).await?;
        let _written = self.written.acquire(customer).await?;
        let imported = import(&self.db, customer, project, &rows).await?;
        Ok(answer(&imported))
    }
}

/// If somebody adds a test case with an identifier of the import at the same moment, nothing is left
/// of the first attempt, and others wait for the second one.
async fn import(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    rows: &[Row],
) -> Result<Vec<ImportedTestCase>, Fault> {
    let mut tx = begin(db).await?;
    let imported = match apply::apply(&mut tx, customer, project, rows).await {
        Err(Fault::Unavailable(_)) => {
            tx.rollback().await?;
            tx = begin(db).await?;
            project::store::claim(&mut tx, customer, project).await?;
            apply::apply(&mut tx, customer, project, rows).await?
        }
        first => first?,
    };
    tx.commit().await?;
    Ok(imported)
}

fn answer(imported: &[ImportedTestCase]) -> Response<Batches<ImportedTestCaseBatch>> {
    let batches: Vec<_> = imported
        .chunks(ROWS_IN_MESSAGE)
        .map(|rows| Ok(ImportedTestCaseBatch { items: rows.to_vec(), next_cursor: None }))
        .collect();
    Response::new(stream::iter(batches).boxed())
}
