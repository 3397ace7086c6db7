//! Snapshots: the parts of the catalog that an execution copies when it starts, so that its history
//! never changes.

mod adoption;
mod named;
mod rules;
mod store;
mod variables;

use std::{mem, sync::Arc};

use assay_auth::Caller;
use assay_database::begin;
use assay_fair::Shares;
use assay_proto::{
    CustomerId, EnvironmentId, Fault, ProjectId, SubjectId, TestSetId,
    catalog::{
        AdoptTestCasesRequest, FindTestSetRequest, ReportedTestCase, Snapshot, SnapshotTarget,
        TakeSnapshotRequest, TestSet, snapshot_service_server,
    },
};
use assay_rpc::list::{self, Batches};
use futures::{StreamExt, TryStreamExt, stream};
use prost::Message;
use sqlx::{PgPool, PgTransaction};
use tonic::{Request, Response, Status, Streaming};

use self::{adoption::Aliases, rules::ExecutableCase};
use crate::{project, records::Records, secrets::Secrets, test_set};

/// Maximum number of attempts of an adoption that meets a deadlock or loses its database.
const ATTEMPTS: u32 = 3;

/// Maximum number of adoptions that are written at once.
const ADOPTIONS: usize = 4;

#[derive(Clone)]
pub(crate) struct SnapshotService {
    db: PgPool,
    secrets: Secrets,
    adoptions: Shares,
}

impl SnapshotService {
    pub(crate) fn new(db: PgPool, secrets: Secrets) -> Self {
        Self { db, secrets, adoptions: Shares::new(ADOPTIONS) }
    }

    /// Returns the stream of a snapshot, whose first message holds all but the rest of the test cases.
    /// These are read part by part while they are sent, since their plans are frozen. A test case that
    /// was reported under an alias has that identifier.
    fn stream(
        &self,
        customer: CustomerId,
        snapshot: Snapshot,
        cases: Vec<ExecutableCase>,
        aliases: Aliases,
    ) -> Response<Batches<Snapshot>> {
        if cases.is_empty() {
            return Response::new(stream::iter([Ok(snapshot)]).boxed());
        }
        let (db, aliases) = (self.db.clone(), Arc::new(aliases));
        let cases = stream::iter(rules::parts(cases)).then(move |part| {
            let (db, aliases) = (db.clone(), aliases.clone());
            async move {
                let mut copies = variables::copy(&db, customer, &part).await?;
                for (copy, case) in copies.iter_mut().zip(&part) {
                    if let Some(alias) = aliases.get(&case.case) {
                        let own = mem::replace(&mut copy.identifier, alias.clone());
                        copy.own_identifier = Some(own);
                    }
                }
                Ok::<_, Status>(copies)
            }
        });
        let cases = cases.map_ok(|copies| stream::iter(list::split(copies)).map(Ok)).try_flatten();
        let mut next = Some(snapshot);
        let parts = cases.map_ok(move |test_cases| {
            let head = next.take().unwrap_or_default();
            Snapshot { test_cases, ..head }
        });
        Response::new(parts.boxed())
    }
}

#[tonic::async_trait]
impl snapshot_service_server::SnapshotService for SnapshotService {
    type TakeSnapshotStream = Batches<Snapshot>;
    type AdoptTestCasesStream = Batches<Snapshot>;

    async fn take_snapshot(
        &self,
        request: Request<TakeSnapshotRequest>,
    ) -> Result<Response<Self::TakeSnapshotStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let TakeSnapshotRequest { target, skip_not_ready } = request.into_inner();
        let target = Target::parse(customer, target)?;

        let mut tx = begin(&self.db).await?;
        let snapshot = target.snapshot(&mut tx).await?;
        let members = test_set::members::ids(&mut tx, customer, target.test_set).await?;
        let cases = store::choose(&mut tx, customer, &members).await?;
        if !skip_not_ready {
            let missing = rules::missing(&members, &cases);
            rules::all_ready(&store::identifiers(&mut tx, customer, &missing).await?)?;
        }
        if cases.is_empty() {
            return Err(
                Fault::invalid("TestCases", "the test set has no executable test cases").into()
            );
        }
        rules::fits(&cases)?;
        variables::check(&mut tx, &self.secrets, customer, snapshot.subject.as_ref(), &cases)
            .await?;
        store::freeze(&mut tx, customer, &cases).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(self.stream(customer, snapshot, cases, Aliases::new()))
    }

    async fn find_test_set(
        &self,
        request: Request<FindTestSetRequest>,
    ) -> Result<Response<SnapshotTarget>, Status> {
        let caller = Caller::of(&request)?;
        Ok(Response::new(named::find(&self.db, &caller, request.into_inner()).await?))
    }

    async fn adopt_test_cases(
        &self,
        request: Request<Streaming<AdoptTestCasesRequest>>,
    ) -> Result<Response<Self::AdoptTestCasesStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let (target, cases) = receive(customer, request.into_inner()).await?;
        let cases = rules::reported(cases)?;
        let _share = self.adoptions.acquire(customer).await?;
        // An adoption can be repeated: it only reads the test cases that exist.
        let mut attempt = 1;
        loop {
            match adopt(&self.db, &target, &cases).await {
                Err(Fault::Unavailable(_)) if attempt < ATTEMPTS => attempt += 1,
                Ok((snapshot, cases, aliases)) => {
                    return Ok(self.stream(customer, snapshot, cases, aliases));
                }
                Err(fault) => return Err(fault.into()),
            }
        }
    }
}

/// Receives the whole request. A caller that disappears looks like the end of the stream, so the last
/// message is marked.
async fn receive(
    customer: CustomerId,
    mut parts: Streaming<AdoptTestCasesRequest>,
) -> Result<(Target, Vec<ReportedTestCase>), Status> {
    let (mut target, mut cases, mut is_complete, mut bytes) = (None, Vec::new(), false, 0);
    while let Some(part) = parts.message().await? {
        bytes += part.encoded_len();
        target = target.or(part.target);
        cases.extend(part.test_cases);
        is_complete = part.last;
        rules::not_too_many(cases.len(), bytes)?;
    }
    if !is_complete {
        return Err(Fault::Malformed("the request is incomplete".to_owned()).into());
    }
    Ok((Target::parse(customer, target)?, cases))
}

async fn adopt(
    db: &PgPool,
    target: &Target,
    cases: &[ReportedTestCase],
) -> Result<(Snapshot, Vec<ExecutableCase>, Aliases), Fault> {
    let Target { customer, project, test_set, .. } = *target;
    let mut tx = begin(db).await?;
    project::store::lock_for_many(&mut tx, customer, project).await?;
    let snapshot = target.snapshot(&mut tx).await?;
    let (cases, aliases) = adoption::adopt(&mut tx, customer, project, test_set, cases).await?;
    rules::fits(&cases)?;
    tx.commit().await?;
    Ok((snapshot, cases, aliases))
}

/// The test set that a snapshot is taken of, and the requested subject and environment.
struct Target {
    customer: CustomerId,
    project: ProjectId,
    test_set: TestSetId,
    subject: Option<SubjectId>,
    environment: Option<EnvironmentId>,
}

impl Target {
    fn parse(customer: CustomerId, target: Option<SnapshotTarget>) -> Result<Self, Fault> {
        let missing = || Fault::Malformed("the target is missing".to_owned());
        let target = target.ok_or_else(missing)?;
        Ok(Self {
            customer,
            project: ProjectId::from_path(&target.project_id)?,
            test_set: TestSetId::from_path(&target.test_set_id)?,
            subject: SubjectId::from_field_if_any(rules::SUBJECT, target.subject_id.as_deref())?,
            environment: EnvironmentId::from_field_if_any(
                rules::ENVIRONMENT,
                target.environment_id.as_deref(),
            )?,
        })
    }

    /// Locks the test set and returns a snapshot of it, without test cases.
    async fn snapshot(&self, tx: &mut PgTransaction<'_>) -> Result<Snapshot, Fault> {
        let (customer, project) = (self.customer, self.project);
        let set = Records::<TestSet>::of(customer, project).lock(tx, self.test_set).await?;
        let default_branch = project::store::default_branch(&mut **tx, customer, project).await?;
        let selected =
            SubjectId::from_field_if_any(rules::SUBJECT, set.selected_subject_id.as_deref())?;
        let subject = match self.subject.or(selected) {
            Some(id) => Some(store::subject(tx, customer, project, id).await?),
            None => None,
        };
        let selected = EnvironmentId::from_field_if_any(
            rules::ENVIRONMENT,
            set.selected_environment_id.as_deref(),
        )?;
        let environment = match self.environment.or(selected) {
            Some(id) => Some(store::environment(tx, customer, project, id).await?),
            None => None,
        };
        Ok(Snapshot {
            test_set_name: set.name,
            stop_on_failure: set.stop_on_failure,
            time_out: set.time_out,
            tags: set.tags,
            priority: set.priority,
            default_branch,
            gate: set.gate,
            subject,
            environment,
            test_cases: Vec::new(),
        })
    }
}
