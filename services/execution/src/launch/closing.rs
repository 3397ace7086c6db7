//! Launches that are over: their requests become the results of their execution.

use assay_formats::reportportal::{Launch, Launched};
use assay_proto::Fault;
use assay_runtime::{begin, body::Memory};
use bytes::Bytes;
use tokio::task::spawn_blocking;
use tonic::Status;
use uuid::Uuid;

use super::{Launches, OfProject, store, store::StoredLaunch};
use crate::{
    artifact::staged::{self, NewFile},
    execution::{rules::can_complete, store as executions},
    progress::report::Ending,
    result::{
        self, Added,
        attachments::name_of,
        file::{self, Report},
        rules::{Case, Reported},
    },
    settle::end_execution,
    test_report,
};

/// Maximum memory that is reserved for a launch, in bytes. The logs of a larger one are shortened.
const MEMORY: usize = 96 << 20;

/// Maximum size of an artifact with late requests, in bytes.
const LATE: usize = 32 << 20;

impl Launches {
    /// Closes the next launch that is due. Returns whether there was one.
    pub(super) async fn close_next(&self) -> Result<bool, Fault> {
        let db = &self.0.db;
        let Some(launch) = store::take_due(db).await? else { return Ok(false) };
        if let Err(status) = self.close(&launch).await {
            tracing::warn!(%status, launch.id = %launch.id,
                "cannot store the results of a launch; trying again");
            store::postpone(db, &launch, false).await?;
        }
        Ok(true)
    }

    async fn close(&self, launch: &StoredLaunch) -> Result<(), Status> {
        let db = &self.0.db;
        let Some((project, execution)) = launch.execution else {
            tracing::warn!(launch.id = %launch.id, "removing the requests of a launch that did not start");
            return Ok(store::remove(db, launch.customer, launch.id).await?);
        };
        match executions::get(db, launch.customer, project, execution).await {
            Ok(_) => {}
            // The project was deleted.
            Err(Fault::NotFound(_)) => {
                return Ok(store::remove(db, launch.customer, launch.id).await?);
            }
            Err(fault) => return Err(fault.into()),
        }
        self.store_files(launch, (project, execution)).await?;
        if launch.ended {
            return self.store_late(launch, (project, execution)).await;
        }
        if let Some(last) = Box::pin(self.store_results(launch, (project, execution))).await? {
            store::clear(db, launch, last).await?;
        }
        Ok(())
    }

    /// Makes the files of a launch artifacts, one after the other.
    async fn store_files(
        &self,
        launch: &StoredLaunch,
        (_, execution): OfProject,
    ) -> Result<(), Status> {
        let (db, customer) = (&self.0.db, launch.customer);
        while let Some(file) = store::next_file(db, launch).await? {
            let new = NewFile {
                name: file.file_name,
                content_type: file.content_type,
                contents: file.body.into(),
            };
            let staged = self.0.artifacts.stage(customer, execution, vec![new]).await?;
            let mut tx = begin(db).await?;
            staged::insert(&mut tx, customer, execution, &staged).await?;
            store::delete_request(&mut tx, launch, file.sequence).await?;
            tx.commit().await.map_err(Fault::from)?;
        }
        Ok(())
    }

    /// Stores the results of a launch and completes its execution. Returns its last request, unless
    /// another one has arrived meanwhile or test cases are unknown.
    async fn store_results(
        &self,
        launch: &StoredLaunch,
        (project, execution): OfProject,
    ) -> Result<Option<i64>, Status> {
        let (db, customer) = (&self.0.db, launch.customer);
        let (launched, last, _memory) = self.read(launch, true).await?;
        let log = launched.log.clone();
        let Report { results, mut attachments, .. } = results(launched, launch.finished).await?;
        let identifiers: Vec<&str> = results.iter().filter_map(identifier).collect();
        let known = test_report::store::known(db, customer, execution, &identifiers).await?;
        if identifiers.iter().any(|identifier| !known.contains(*identifier)) {
            store::postpone(db, launch, true).await?;
            return Ok(None);
        }
        if !log.is_empty() {
            attachments.push(text("launch.log", log.into_bytes()));
        }
        let staged = self.0.artifacts.stage(customer, execution, attachments).await?;
        let _writer = self.0.executions.limits.write(customer, execution.0).await?;
        let mut tx = begin(db).await?;
        let added = Added { results, ..Added::default() };
        match result::report(&mut tx, customer, project, execution, added, (None, staged)).await {
            Err(Fault::Conflict { code: "execution_ended", .. }) => {
                drop(tx);
                tracing::info!(launch.id = %launch.id,
                    "dropping the results of a launch whose execution has ended before");
                return Ok(store::end(db, launch, last).await?.then_some(last));
            }
            reported => _ = reported?,
        }
        let mut state = executions::lock(&mut tx, customer, project, execution).await?;
        if matches!(can_complete(&state), Ok(true)) {
            end_execution(&mut tx, customer, &mut state, Ending::Aborted).await?;
        }
        if !store::end(&mut *tx, launch, last).await? {
            return Ok(None);
        }
        tx.commit().await.map_err(Fault::from)?;
        Ok(Some(last))
    }

    /// Stores the requests that arrived after the end of a launch as an artifact.
    async fn store_late(
        &self,
        launch: &StoredLaunch,
        (_, execution): OfProject,
    ) -> Result<(), Status> {
        let (db, customer, mut last) = (&self.0.db, launch.customer, launch.last_sequence);
        let mut late = Vec::new();
        loop {
            let requests = store::requests(db, launch, last, true).await?;
            let Some(newest) = requests.last() else { break };
            last = newest.sequence;
            for request in requests {
                if late.len() + request.body.len() < LATE {
                    late.extend_from_slice(&request.body);
                    late.push(b'\n');
                }
            }
        }
        if !late.is_empty() {
            let file = text(&name_of("late.ndjson", &late), late);
            let staged = self.0.artifacts.stage(customer, execution, vec![file]).await?;
            let mut tx = begin(db).await?;
            staged::insert(&mut tx, customer, execution, &staged).await?;
            if !store::end(&mut *tx, launch, last).await? {
                return Ok(());
            }
            tx.commit().await.map_err(Fault::from)?;
        }
        Ok(store::clear(db, launch, last).await?)
    }

    /// Reads the requests of a launch. Returns its contents and its last request.
    pub(super) async fn read(
        &self,
        launch: &StoredLaunch,
        with_logs: bool,
    ) -> Result<(Launched, i64, Memory), Status> {
        let db = &self.0.db;
        let size = usize::try_from(store::size(db, launch).await?).unwrap_or(MEMORY);
        let intake = &self.0.executions.limits.intake;
        let memory = intake.reserve(launch.customer, size.min(MEMORY)).await?;
        let (mut contents, mut last) = (Launch::of_agent(&launch.agent), launch.last_sequence);
        loop {
            let requests = store::requests(db, launch, last, with_logs).await?;
            let Some(newest) = requests.last() else { break };
            last = newest.sequence;
            let added = spawn_blocking(move || {
                requests.into_iter().try_for_each(|request| add(&mut contents, request))?;
                Ok::<_, Fault>(contents)
            });
            contents = added.await.map_err(Fault::internal)??;
        }
        let launched = spawn_blocking(move || contents.end()).await.map_err(Fault::internal)?;
        Ok((launched, last, memory))
    }
}

fn add(contents: &mut Launch, request: store::Staged) -> Result<(), Fault> {
    let store::Staged { kind, item_id, parent_id, body, .. } = request;
    let (item, parent) = (item_id.map(|id| id.as_u128()), parent_id.as_ref().map(Uuid::as_u128));
    match (kind.as_str(), item) {
        ("Start", Some(item)) => contents.start(item, parent, &body),
        ("Finish", Some(item)) => contents.finish(item, &body),
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

fn identifier(result: &Reported) -> Option<&str> {
    match &result.case {
        Some(Case::Identifier(identifier)) => Some(identifier),
        _ => None,
    }
}

fn text(name: &str, contents: Vec<u8>) -> NewFile {
    let (name, content_type) = (name.to_owned(), "text/plain".to_owned());
    NewFile { name, content_type, contents: Bytes::from(contents) }
}
