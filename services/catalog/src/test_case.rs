//! Test cases.

pub(crate) mod aliases;
mod change;
mod creation;
pub(crate) mod identifiers;
pub(crate) mod rules;
pub(crate) mod store;

use assay_auth::Caller;
use assay_proto::{
    Fault, ProjectId, TestCaseId,
    catalog::{
        BatchGetTestCasesRequest, CreateTestCaseRequest, DeleteTestCaseRequest, FoundTestCase,
        FoundTestCases, GetAliasesRequest, ListTestCasesRequest, RecordKind, ReplaceAliasesRequest,
        TestCase, TestCaseAliases, TestCaseBatch, UpdateTestCaseRequest, test_case_service_server,
    },
};
use assay_records::Change;
use assay_runtime::{
    Gather, LARGEST_BATCH, Shares, begin,
    list::{self, Batches},
};
use prost::Message;
use sqlx::PgPool;
use tonic::{Code, Request, Response, Status};

use self::{
    change::Changes,
    creation::{Creation, Creations},
};
use crate::{
    deletion,
    opening::Openings,
    project,
    records::{self, Reads, Records},
};

/// Number of bytes after which an answer has no further test cases.
const LARGEST_ANSWER: usize = 1 << 20;

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
            async move { Ok(records::get_all(&db, scope, &ids).await?) }
        });
        let creations = creation::gather(&db, shares);
        let changes = Changes::new(&db, shares);
        Self { db, openings, reads, creations, changes }
    }
}

#[tonic::async_trait]
impl test_case_service_server::TestCaseService for TestCaseService {
    type ListTestCasesStream = Batches<TestCaseBatch>;

    async fn list_test_cases(
        &self,
        request: Request<ListTestCasesRequest>,
    ) -> Result<Response<Self::ListTestCasesStream>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let filter = request.filter();
        let (db, customer, user) = (self.db.clone(), caller.customer, caller.user);
        list::answer(request.page, move |slice| {
            let db = db.clone();
            async move {
                Records::<TestCase>::of(customer, project).list(&db, user, filter, &slice).await
            }
        })
        .await
    }

    async fn batch_get_test_cases(
        &self,
        request: Request<BatchGetTestCasesRequest>,
    ) -> Result<Response<FoundTestCases>, Status> {
        let caller = Caller::of(&request)?;
        let BatchGetTestCasesRequest { project_id, ids } = request.into_inner();
        if ids.len() > LARGEST_BATCH {
            return Err(Fault::invalid("ids", format!("must be {LARGEST_BATCH} at most")).into());
        }
        let project = ProjectId::from_path_if_any(project_id.as_deref())?;
        let wanted: Vec<_> = ids.iter().map(|id| TestCaseId::from_path(id).ok()).collect();
        let known = wanted.iter().flatten().copied().collect::<Vec<_>>();
        let mut found = self.reads.run_all((caller.customer, project), known).await?.into_iter();
        let (mut items, mut size) = (Vec::with_capacity(wanted.len()), 0);
        for id in wanted {
            let test_case = match id.and_then(|_| found.next()) {
                Some(Err(status)) if status.code() != Code::NotFound => return Err(status),
                found => found.and_then(Result::ok),
            };
            if let Some((id, case)) = id.zip(test_case.as_ref()) {
                let project = ProjectId::from_record(&case.project_id)?;
                self.openings.note(&caller, RecordKind::TestCase, id.0, project.0);
            }
            let item = FoundTestCase { test_case };
            size += item.encoded_len();
            items.push(item);
            if size >= LARGEST_ANSWER {
                break;
            }
        }
        Ok(Response::new(FoundTestCases { items }))
    }

    async fn create_test_case(
        &self,
        request: Request<CreateTestCaseRequest>,
    ) -> Result<Response<TestCase>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let input = rules::valid(rules::new(request.test_case.unwrap_or_default()))?;
        let created = self.creations.run((customer, project), Creation::of(input));
        Ok(Response::new(created.await?))
    }

    async fn update_test_case(
        &self,
        request: Request<UpdateTestCaseRequest>,
    ) -> Result<Response<TestCase>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = TestCaseId::from_path(&request.id)?;
        let UpdateTestCaseRequest { data_version, changes, fields, .. } = request;
        let change = Change { data_version, changes, fields };
        Ok(Response::new(self.changes.run(customer, project, id, change).await?))
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
