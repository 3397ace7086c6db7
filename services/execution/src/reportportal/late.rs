//! Requests of launches that do not become results, because the execution has ended before or they
//! arrived late. They are kept as artifacts.

use assay_database::begin;
use assay_formats::parse_lenient;
use assay_ledger::{
    execution::{rules::can_complete, store as executions},
    progress::report::Ending,
    settle::end_execution,
};
use assay_proto::{CustomerId, ExecutionId, Fault, LaunchId};
use serde_json::{Value, json};
use tonic::Status;

use super::{
    Launches, OfProject,
    closing::text,
    store::{self, StoredLaunch, merging},
};
use crate::{
    artifact::staged::{self, NewFile},
    result::attachments::name_of,
};

/// Size from which on further requests become another artifact, in bytes.
const LARGEST: usize = 16 << 20;

impl Launches {
    /// Stores the requests of a launch that have not become results as artifacts, and ends the
    /// launch and its execution.
    pub(super) async fn keep(
        &self,
        launch: &StoredLaunch,
        (project, execution): OfProject,
    ) -> Result<(), Status> {
        let (db, customer, mut last) = (&self.0.db, launch.customer, launch.last_sequence);
        let current = store::find(db, customer, launch.id).await?;
        if current.is_none_or(|current| current.ended != launch.ended) {
            // Another program has stored its results.
            return Ok(store::release(db, launch).await?);
        }
        loop {
            let (lines, newest) = self.lines(launch, last).await?;
            if lines.is_empty() {
                break;
            }
            last = newest;
            let file = text(&name_of("late.ndjson", &lines), lines);
            self.add_artifact(customer, execution, file).await?;
        }
        let mut tx = begin(db).await?;
        let mut state = executions::lock(&mut tx, customer, project, execution).await?;
        if !state.has_ended() && matches!(can_complete(&state), Ok(true)) {
            end_execution(&mut tx, customer, &mut state, Ending::Aborted).await?;
        }
        if store::end(&mut tx, launch, last).await?.is_none() {
            drop(tx);
            return Ok(store::release(db, launch).await?);
        }
        Ok(tx.commit().await.map_err(Fault::from)?)
    }

    /// Hands the late requests of a merged launch to the one that has its results. Returns whether that
    /// one is known.
    pub(super) async fn forward(
        &self,
        launch: &StoredLaunch,
        target: LaunchId,
    ) -> Result<bool, Fault> {
        let mut tx = begin(&self.0.db).await?;
        let is_known = merging::forward(&mut tx, launch.customer, launch.id, target).await?;
        tx.commit().await?;
        Ok(is_known)
    }

    /// Makes a file an artifact of an execution, unless the results of the execution have expired: its
    /// artifacts have, too, so that nothing would remove the new one.
    pub(super) async fn add_artifact(
        &self,
        customer: CustomerId,
        execution: ExecutionId,
        file: NewFile,
    ) -> Result<(), Status> {
        let db = &self.0.db;
        if executions::has_expired(db, customer, execution).await? {
            return Ok(());
        }
        let staged = self.0.artifacts.stage(customer, execution, vec![file]).await?;
        let mut tx = begin(db).await?;
        // The results may have expired meanwhile.
        if merging::lock_unexpired(&mut tx, customer, execution).await? {
            staged::insert(&mut tx, customer, execution, &staged).await?;
            tx.commit().await.map_err(Fault::from)?;
        }
        Ok(())
    }

    /// Reads requests after one of them as lines of JSON. Returns them with the last request.
    async fn lines(&self, launch: &StoredLaunch, after: i64) -> Result<(Vec<u8>, i64), Fault> {
        let (mut lines, mut last) = (Vec::new(), after);
        while lines.len() < LARGEST {
            let requests = store::requests(&self.0.db, launch, last, true).await?;
            let Some(newest) = requests.last() else { break };
            last = newest.sequence;
            for request in &requests {
                lines.extend_from_slice(line(request).to_string().as_bytes());
                lines.push(b'\n');
            }
        }
        Ok((lines, last))
    }
}

fn line(request: &store::Staged) -> Value {
    let body: Value = parse_lenient(&request.body).unwrap_or_default();
    let mut line = json!({ "request": request.kind, "body": body });
    for (field, id) in [("item", request.item_id), ("parent", request.parent_id)] {
        if let Some(id) = id {
            line[field] = json!(id);
        }
    }
    line
}
