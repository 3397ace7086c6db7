//! Imports: thousands of test cases in one transaction.

mod apply;
mod plans;
mod rows;
mod store;

use assay_auth::Caller;
use assay_database::begin;
use assay_fair::Shares;
use assay_proto::{
    Batch as _, CustomerId, Fault, ProjectId,
    catalog::{
        ImportTestCasesRequest, ImportedTestCase, ImportedTestCaseBatch, import_service_server,
    },
};
use assay_rpc::{
    body::{Body, Intake, Memory, open},
    list::Batches,
};
use futures::{StreamExt, stream};
use sqlx::PgPool;
use tonic::{Request, Response, Status, Streaming};

use self::{plans::NewPlan, rows::Row};
use crate::{project, secrets::Secrets};

/// Memory for the bodies and rows of imports, in mebibytes.
const MEMORY: usize = 128;

/// Maximum number of imports that are written at once.
const WRITTEN: usize = 2;

/// Number of rows in a message of the response.
const ROWS_IN_MESSAGE: usize = 500;

pub(crate) struct ImportService {
    db: PgPool,
    intake: Intake,
    written: Shares,
    secrets: Secrets,
}

impl ImportService {
    pub(crate) fn new(db: PgPool, secrets: Secrets) -> Self {
        Self { db, intake: Intake::new(MEMORY), written: Shares::new(WRITTEN), secrets }
    }
}

#[tonic::async_trait]
impl import_service_server::ImportService for ImportService {
    type ImportTestCasesStream = Batches<ImportedTestCaseBatch>;

    async fn import_test_cases(
        &self,
        request: Request<Streaming<ImportTestCasesRequest>>,
    ) -> Result<Response<Self::ImportTestCasesStream>, Status> {
        let caller = Caller::of(&request)?;
        let customer = caller.customer;
        let (target, pieces) = open(request.into_inner()).await?;
        let project = ProjectId::from_path(&target.project_id)?;
        // Fails before megabytes are sent in vain.
        project::store::find(&self.db, customer, project).await?;

        // A slow body holds only the memory of the received bytes.
        let parse =
            move |body: Body, memory: &mut Memory| rows::read(body.into_file(), &target, memory);
        let (rows, _memory) = self.intake.read(customer, pieces, parse).await?;
        let _written = self.written.acquire(customer).await?;
        let plans = plans::valid(&self.secrets, &caller, &rows)?;
        let imported = import(&self.db, customer, project, &rows, &plans).await?;
        Ok(answer(&imported))
    }
}

/// Writes an import. If another transaction adds a test case with one of its identifiers at the same
/// moment, the import is rolled back and repeated under an exclusive lock of the project.
async fn import(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    rows: &[Row],
    plans: &[NewPlan],
) -> Result<Vec<ImportedTestCase>, Fault> {
    let mut tx = begin(db).await?;
    let imported = match apply::apply(&mut tx, customer, project, rows, plans).await {
        Err(Fault::Unavailable(_)) => {
            tx.rollback().await?;
            tx = begin(db).await?;
            project::store::lock_exclusive(&mut tx, customer, project).await?;
            apply::apply(&mut tx, customer, project, rows, plans).await?
        }
        first => first?,
    };
    tx.commit().await?;
    Ok(imported)
}

fn answer(imported: &[ImportedTestCase]) -> Response<Batches<ImportedTestCaseBatch>> {
    let batches: Vec<_> = imported
        .chunks(ROWS_IN_MESSAGE)
        .map(|rows| Ok(ImportedTestCaseBatch::render(rows, None)?))
        .collect();
    Response::new(stream::iter(batches).boxed())
}
