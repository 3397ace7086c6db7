//! Adding results to an execution that runs.

use std::mem::take;

use assay_auth::Caller;
use assay_database::begin;
use assay_ledger::{
    execution::{
        rules::{no_new_results, require_external},
        store,
    },
    settle::add_results,
};
use assay_proto::{
    CustomerId, ExecutionId, Fault, ProjectId, catalog::Snapshot, execution::ReportedResults,
};
use assay_rpc::body::Memory;
use sqlx::PgTransaction;
use tonic::Status;

use super::{ResultService, adoption, resolve, rules::Reported};
use crate::{
    artifact::staged::{self, NewFile, Staged},
    quota::Kind,
};

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
        let state =
            limits.read(customer, store::find(db, customer, Some(project), execution)).await?;
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
        // Ended executions adopt no unknown test cases: say that it has ended, not that a test case is unknown.
        Err(_) if state.execution.is_open && state.has_ended() => return Err(no_new_results()),
        resolved => resolved?,
    };
    let continues = digest.is_some();
    let accepted = add_results(tx, customer, &mut state, &mut reports, results, continues).await?;
    store::add_notes(tx, customer, execution, &notes).await?;
    Ok(ReportedResults { accepted: count(accepted), duplicates: count(sent - accepted), notes })
}

/// The answer to results that were all reported before.
pub(super) fn repeated(sent: usize) -> ReportedResults {
    ReportedResults { duplicates: count(sent), ..ReportedResults::default() }
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
