//! Test cases.

pub(crate) mod aliases;
mod change;
pub(crate) mod classification;
mod creation;
pub(crate) mod identifiers;
mod pages;
pub(crate) mod rules;
pub(crate) mod store;

use std::sync::Arc;

use assay_auth::Caller;
use assay_database::begin;
use assay_fair::{Gather, LARGEST_BATCH, Shares};
use assay_proto::{
    Fault, ProjectId, TestCaseId,
    catalog::{
        BatchCreateTestCasesRequest, BatchGetTestCasesRequest, BatchListTestCasesRequest,
        BatchUpdateTestCasesRequest, DeleteTestCaseRequest, GetAliasesRequest,
        ListTestCasesRequest, RecordKind, ReplaceAliasesRequest, TestCase, TestCaseAliases,
        TestCaseBatch, TestCasePageReply, TestCasePageReplyBatch, TestCaseReply,
        TestCaseReplyBatch, test_case_service_server,
    },
};
use assay_records::criteria;
use assay_rpc::list::{self, Batches};
use futures::stream;
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use self::{
    change::{CaseChange, Changes, Outcome},
    creation::{Creation, Creations},
};
use crate::{
    deletion, filter,
    opening::Openings,
    project,
    records::{self, ProjectRecord as _, Reads, Records},
};

pub(crate) struct TestCaseService {
    db: PgPool,
    openings: Openings,
    reads: Reads<TestCase>,
    creations: Creations,
    changes: Changes,
}

impl TestCaseService {
    pub(crate) fn new(db: PgPool, shares: &Shares, openings: Openings) -> Self {
        let pool = db.clone();
        let reads = Gather::new(shares, move |scope, ids: Vec<TestCaseId>| {
            let db = pool.clone();
            async move { Ok(records::get_all(&db, scope, &ids, TestCase::COLUMNS_OF_RECORD).await?) }
        });
        let creations = creation::gather(&db, shares);
        let changes = Changes::new(&db, shares);
        Self { db, openings, reads, creations, changes }
    }
}

#[tonic::async_trait]
impl test_case_service_server::TestCaseService for TestCaseService {
    type ListTestCasesStream = Batches<TestCaseBatch>;
    type BatchListTestCasesStream = Batches<TestCasePageReplyBatch>;
    type BatchGetTestCasesStream = Batches<TestCaseReplyBatch>;
    type BatchCreateTestCasesStream = Batches<TestCaseReplyBatch>;
    type BatchUpdateTestCasesStream = Batches<TestCaseReplyBatch>;

    async fn list_test_cases(
        &self,
        request: Request<ListTestCasesRequest>,
    ) -> Result<Response<Self::ListTestCasesStream>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let filter = request.filter();
        let criteria: Arc<[_]> = criteria(request.classification)?.into();
        let (db, customer, user) = (self.db.clone(), caller.customer, caller.user);
        list::answer(filter::page(filter, request.page), move |slice| {
            let (db, criteria) = (db.clone(), criteria.clone());
            async move {
                let cases = Records::<TestCase>::of(customer, project);
                cases.list(&db, user, filter, &criteria, &slice).await
            }
        })
        .await
    }

    async fn batch_list_test_cases(
        &self,
        request: Request<BatchListTestCasesRequest>,
    ) -> Result<Response<Self::BatchListTestCasesStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let BatchListTestCasesRequest { project_id, pages } = request.into_inner();
        check_count("pages", pages.len())?;
        let project = ProjectId::from_path(&project_id)?;
        let slices: Vec<_> = pages.into_iter().map(pages::slice).collect();
        let valid: Vec<_> = slices.iter().flatten().cloned().collect();
        let mut read = pages::read(&self.db, customer, project, &valid).await?.into_iter();
        let outcomes = slices
            .into_iter()
            .map(|slice| slice.map(|_| read.next().flatten()).map_err(Status::from));
        // One message, as it has few bytes.
        let items = outcomes.map(TestCasePageReply::from).collect();
        Ok(Response::new(Box::pin(stream::iter([Ok(TestCasePageReplyBatch { items })]))))
    }

    async fn batch_get_test_cases(
        &self,
        request: Request<BatchGetTestCasesRequest>,
    ) -> Result<Response<Self::BatchGetTestCasesStream>, Status> {
        let caller = Caller::of(&request)?;
        let BatchGetTestCasesRequest { project_id, ids } = request.into_inner();
        check_count("ids", ids.len())?;
        let project = ProjectId::from_path_if_any(project_id.as_deref())?;
        let ids = ids.iter().map(|id| TestCaseId::from_path(id));
        let found = self.reads.run_all((caller.customer, project), ids).await?;
        for case in found.iter().flatten() {
            let id = TestCaseId::from_record(&case.id)?;
            let project = ProjectId::from_record(&case.project_id)?;
            self.openings.note(&caller, RecordKind::TestCase, id.0, project.0);
        }
        Ok(answer(found.into_iter().map(|found| found.map(Some))))
    }

    async fn batch_create_test_cases(
        &self,
        request: Request<BatchCreateTestCasesRequest>,
    ) -> Result<Response<Self::BatchCreateTestCasesStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let BatchCreateTestCasesRequest { project_id, requests } = request.into_inner();
        check_count("requests", requests.len())?;
        let project = ProjectId::from_path(&project_id)?;
        let creations = requests.into_iter().map(Creation::try_from);
        let created = self.creations.run_all((customer, project), creations).await?;
        Ok(answer(created.into_iter().map(|created| created.map(Some))))
    }

    async fn batch_update_test_cases(
        &self,
        request: Request<BatchUpdateTestCasesRequest>,
    ) -> Result<Response<Self::BatchUpdateTestCasesStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let BatchUpdateTestCasesRequest { project_id, requests, waits } = request.into_inner();
        check_count("requests", requests.len())?;
        let project = ProjectId::from_path(&project_id)?;
        let changes = requests.into_iter().map(CaseChange::try_from).collect();
        Ok(answer(self.changes.run(customer, project, changes, waits).await?))
    }

    async fn get_aliases(
        &self,
        request: Request<GetAliasesRequest>,
    ) -> Result<Response<TestCaseAliases>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = TestCaseId::from_path(&request.id)?;
        let aliases = aliases::list(&self.db, customer, project, id).await?;
        Ok(Response::new(TestCaseAliases { aliases }))
    }

    async fn replace_aliases(
        &self,
        request: Request<ReplaceAliasesRequest>,
    ) -> Result<Response<TestCaseAliases>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = TestCaseId::from_path(&request.id)?;
        let aliases = aliases::valid(request.aliases.unwrap_or_default())?;

        let mut tx = begin(&self.db).await?;
        aliases::replace(&mut tx, customer, project, id, &aliases).await?;
        tx.commit().await.map_err(Fault::from)?;
        let aliases = aliases::list(&self.db, customer, project, id).await?;
        Ok(Response::new(TestCaseAliases { aliases }))
    }

    async fn delete_test_case(
        &self,
        request: Request<DeleteTestCaseRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = TestCaseId::from_path(&request.id)?;

        let mut tx = begin(&self.db).await?;
        project::store::lock_exclusive(&mut tx, customer, project).await?;
        deletion::delete_test_case(&mut tx, customer, project, id).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(()))
    }
}

/// Fails if there are more parts of a call than a batch may have.
fn check_count(field: &'static str, count: usize) -> Result<(), Fault> {
    if count > LARGEST_BATCH {
        return Err(Fault::invalid(field, format!("must be {LARGEST_BATCH} at most")));
    }
    Ok(())
}

/// Answers with an outcome for each part of a call.
fn answer(outcomes: impl IntoIterator<Item = Outcome>) -> Response<Batches<TestCaseReplyBatch>> {
    let outcomes = outcomes.into_iter().map(TestCaseReply::from).collect();
    let parts = list::split(outcomes).into_iter();
    let batches = parts.map(|items| Ok(TestCaseReplyBatch { items }));
    Response::new(Box::pin(stream::iter(batches)))
}
