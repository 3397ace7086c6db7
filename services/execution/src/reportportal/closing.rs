//! Launches that are over: their requests become the results of their execution.
//!
//! A launch is taken with a lease, and its attempt is counted before the work begins: requests that no
//! program survives are given up after some attempts, and kept as artifacts. Only the last step writes
//! results: one transaction writes them, ends the execution, and last ends the launch up to the last request that
//! was read. If a request has arrived since, the last statement changes no row, all of it is rolled back, and the
//! launch stays due. So a crash at any point repeats the whole, and repeating it finds the files of logs by their
//! names and changes nothing else.

use assay_database::begin;
use assay_formats::reportportal::{Launch, Launched};
use assay_ledger::{
    execution::{rules::can_complete, store as executions},
    progress::{execution::ExecutionState, report::Ending},
    settle::end_execution,
    test_report,
};
use assay_proto::{ExecutionId, Fault, catalog::Snapshot};
use assay_rpc::body::Memory;
use bytes::Bytes;
use tokio::task::spawn_blocking;
use tonic::{Code, Status};
use uuid::Uuid;

use super::{Inner, Launches, OfProject, rounds, store, store::StoredLaunch};
use crate::{
    artifact::staged::NewFile,
    result::{
        self, Added, adoption,
        file::{self, Report},
        rules::Reported,
    },
};

/// Maximum memory of the items of a launch with their logs, of which long ones are shortened, in bytes:
/// about 100,000 items.
const LARGEST: usize = 64 << 20;

/// Test cases that were adopted for the results of a launch.
enum Adoption {
    /// The execution has them all.
    None,
    Done(Box<Snapshot>, Memory),
    /// No caller is known whose token is accepted.
    NeedsCaller,
}

impl Launches {
    /// Stores what a launch has reported. If that is not possible, because its execution has ended
    /// before, the results violate a rule, or it was given up a day ago, its requests become artifacts.
    pub(super) async fn close(
        &self,
        launch: &StoredLaunch,
        is_given_up: bool,
    ) -> Result<(), Status> {
        let db = &self.0.db;
        if let Some(target) = launch.merged_into
            && self.forward(launch, target).await?
        {
            return Ok(());
        }
        let Some((project, execution)) = launch.execution else {
            tracing::warn!(launch.id = %launch.id, "removing the requests of a launch that did not start");
            return Ok(store::remove(db, launch.customer, launch.id).await?);
        };
        let state = match executions::find(db, launch.customer, Some(project), execution).await {
            Ok(state) => state,
            // The project was deleted.
            Err(Fault::NotFound(_)) => {
                return Ok(store::remove(db, launch.customer, launch.id).await?);
            }
            Err(fault) => return Err(fault.into()),
        };
        self.store_files(launch, execution).await?;
        if launch.ended || state.has_ended() || is_given_up {
            return self.keep(launch, (project, execution)).await;
        }
        match Box::pin(self.store_results(launch, (project, execution), &state)).await {
            Err(status) if launch.is_overdue || is_permanent(&status) => {
                tracing::warn!(%status, launch.id = %launch.id,
                    "cannot store the results of a launch; keeping its requests as artifacts");
                self.keep(launch, (project, execution)).await
            }
            stored => stored,
        }
    }

    /// Makes the files of a launch artifacts, one after the other.
    async fn store_files(
        &self,
        launch: &StoredLaunch,
        execution: ExecutionId,
    ) -> Result<(), Status> {
        let mut last = 0;
        while let Some(file) = store::next_file(&self.0.db, launch, execution, last).await? {
            last = file.sequence;
            let new = NewFile {
                name: file.file_name,
                content_type: file.content_type,
                contents: file.body.into(),
            };
            self.add_artifact(launch.customer, execution, new).await?;
        }
        Ok(())
    }

    /// Stores the results of a launch and completes its execution, unless another request has arrived
    /// meanwhile, or test cases are unknown and no caller is there to adopt them.
    async fn store_results(
        &self,
        launch: &StoredLaunch,
        (project, execution): OfProject,
        state: &ExecutionState,
    ) -> Result<(), Status> {
        let (db, customer) = (&self.0.db, launch.customer);
        let (launched, last, mut memory) = self.read(launch, true).await?;
        let log = [launch.description.as_str(), &launched.log].join("\n").trim().to_owned();
        let comments = launched.tests.iter().filter(|test| !test.comment.is_empty());
        let comments: Vec<_> =
            comments.map(|test| (test.identifier(), test.comment.clone())).collect();
        let Report { results, mut attachments, .. } = results(launched, launch.finished).await?;
        let adopted = match self.adopt_unknown(launch, state, &results).await? {
            Adoption::None => None,
            Adoption::Done(snapshot, more) => {
                memory.add(more);
                Some(*snapshot)
            }
            Adoption::NeedsCaller if launch.is_overdue => {
                return Err(Fault::Unauthenticated.into());
            }
            Adoption::NeedsCaller => return Ok(store::wait_for_caller(db, launch).await?),
        };
        if !log.is_empty() {
            attachments.push(text("launch.log", log.into_bytes()));
        }
        let staged = self.0.artifacts.stage(customer, execution, attachments).await?;
        let _writer = self.0.executions.limits.write(customer, execution.0).await?;
        let mut tx = begin(db).await?;
        let added = Added { results, ..Added::default() };
        result::report(&mut tx, customer, project, execution, added, (adopted, staged)).await?;
        test_report::store::comment_cases(&mut tx, customer, execution, &comments).await?;
        let mut state = executions::lock(&mut tx, customer, project, execution).await?;
        if matches!(can_complete(&state), Ok(true)) {
            end_execution(&mut tx, customer, &mut state, Ending::Aborted).await?;
        }
        let Some(seconds) = store::end(&mut tx, launch, last).await? else {
            drop(tx);
            return Ok(store::release(db, launch).await?);
        };
        tx.commit().await.map_err(Fault::from)?;
        rounds::record_stored(seconds);
        Ok(())
    }

    /// Has the catalog adopt the test cases of results that the execution does not have.
    async fn adopt_unknown(
        &self,
        launch: &StoredLaunch,
        state: &ExecutionState,
        results: &[Reported],
    ) -> Result<Adoption, Status> {
        let Inner { db, callers, results: service, executions, .. } = &*self.0;
        let (customer, id) = (launch.customer, ExecutionId::from_record(&state.execution.id)?);
        let named = adoption::named(results);
        let identifiers: Vec<&str> = named.iter().map(|case| case.identifier.as_str()).collect();
        let known = test_report::store::known(db, customer, id, &identifiers).await?;
        if identifiers.iter().all(|identifier| known.contains(*identifier)) {
            return Ok(Adoption::None);
        }
        let Some(caller) = callers.of(customer, launch.id) else {
            return Ok(Adoption::NeedsCaller);
        };
        let (catalog, intake) = (&service.catalog, &executions.limits.intake);
        match adoption::adopt_unknown(db, catalog, &caller, state, results, intake).await {
            Err(status) if is_refused(&status) => {
                tracing::warn!(%status, launch.id = %launch.id,
                    "the caller of a launch cannot adopt its test cases; waiting for another one");
                callers.forget(customer, launch.id);
                Ok(Adoption::NeedsCaller)
            }
            adopted => Ok(adopted?.map_or(Adoption::None, |(snapshot, memory)| {
                Adoption::Done(Box::new(snapshot), memory)
            })),
        }
    }

    /// Reads the requests of a launch. Returns its contents and its last request.
    pub(super) async fn read(
        &self,
        launch: &StoredLaunch,
        with_logs: bool,
    ) -> Result<(Launched, i64, Memory), Status> {
        let (db, customer) = (&self.0.db, launch.customer);
        // A page is read before it is known how much memory it takes.
        let mut memory = self.0.executions.limits.intake.reserve(customer, store::PAGE).await?;
        let mut reserved = 0;
        let mut contents = Launch::of_agent(&launch.agent).with_reruns(launch.reruns > 0);
        let mut last = launch.last_sequence;
        loop {
            let requests = store::requests(db, launch, last, with_logs);
            let requests = self.read_with(customer, requests).await?;
            let Some(newest) = requests.last() else { break };
            last = newest.sequence;
            let added = spawn_blocking(move || {
                for request in requests {
                    add(&mut contents, request);
                }
                contents
            });
            contents = added.await.map_err(Fault::internal)?;
            if contents.size() > LARGEST {
                return Err(too_large().into());
            }
            // The tests take as much again.
            memory.hold(2 * (contents.size() - reserved)).await?;
            reserved = contents.size();
        }
        let launched = spawn_blocking(move || contents.end()).await.map_err(Fault::internal)?;
        Ok((launched, last, memory))
    }
}

fn add(contents: &mut Launch, request: store::Staged) {
    let store::Staged { kind, item_id, parent_id, body, .. } = request;
    let (item, parent) = (item_id.map(|id| id.as_u128()), parent_id.as_ref().map(Uuid::as_u128));
    match (kind.as_str(), item) {
        ("Start", Some(item)) => contents.start(item, parent, &body),
        ("Finish", Some(item)) => contents.finish(item, &body),
        ("Finish", None) => contents.finish_launch(&body),
        _ => contents.log(item, &body),
    }
}

/// Returns the results of a launch. If it is finished, items that are not were aborted.
pub(super) async fn results(launched: Launched, finished: bool) -> Result<Report, Fault> {
    let tests = spawn_blocking(move || {
        let uncertain = launched.uncertain.into_iter().filter(|_| finished);
        file::of_tests(launched.tests.into_iter().chain(uncertain))
    });
    tests.await.map_err(Fault::internal)?
}

fn too_large() -> Fault {
    let reason = format!(
        "the launch has more than {} MiB of items: report it in several launches",
        LARGEST >> 20
    );
    Fault::Refused { code: "too_large", reason }
}

/// Whether a call fails in the same way if it is repeated.
fn is_permanent(status: &Status) -> bool {
    matches!(status.code(), Code::InvalidArgument | Code::FailedPrecondition)
}

/// Whether a caller's token has expired or allows too little.
fn is_refused(status: &Status) -> bool {
    matches!(status.code(), Code::Unauthenticated | Code::PermissionDenied)
}

pub(super) fn text(name: &str, contents: Vec<u8>) -> NewFile {
    let (name, content_type) = (name.to_owned(), "text/plain".to_owned());
    NewFile { name, content_type, contents: Bytes::from(contents) }
}
