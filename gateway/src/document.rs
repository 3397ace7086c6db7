//! Documents of executions: their facts, read from the services, and the template of the project.
//!
//! A document is made as a whole before it is sent, since its parts have any order. So everything that it may have is
//! bounded: the numbers of tests, steps and pictures, and the bytes of texts and pictures. Two are made at once, and
//! the memory of those that clients still read is limited.

mod entry;
mod facts;
mod failure;
mod picture;
mod template;

use std::{convert::Infallible, fmt::Display, time::Duration};

use assay_auth::Caller;
use assay_document::{Document, Listed, Pdf, Picture, Report, compose};
use assay_fair::Share;
use assay_proto::{
    CustomerId,
    execution::{ExecutionSummary, GetExecutionSummaryRequest},
};
use axum::{body::Body, extract::FromRef};
use bytes::Bytes;
use futures::stream;
use tokio::{task::spawn_blocking, time::Instant};

use self::entry::Entry;
use crate::{
    document_pools::{DocumentPools, UNIT},
    path::unless_zero,
    problem::Problem,
    services::{ArtifactFiles, Executions, Failures, Files, Projects, Services, TestReports},
};

/// Maximum wait for the turn of a document, and of one with a turn for the memory of its file: others wait for the
/// turn meanwhile.
const PATIENCE: Duration = Duration::from_secs(3);

/// Size of the texts of a document, at most, with the markup around them.
const TEXTS: usize = 8 << 20;

/// Time after which no further steps and pictures are read.
const READING: Duration = Duration::from_secs(5);

/// Time for all layouts of a PDF, of which the first has half. Others follow if pictures cannot be decoded.
const LAYOUTS: Duration = Duration::from_secs(6);

/// The services that know what documents have.
#[derive(Clone)]
pub(crate) struct Documents {
    pools: DocumentPools,
    executions: Executions,
    failures: Failures,
    reports: TestReports,
    artifacts: ArtifactFiles,
    projects: Projects,
    files: Files,
}

impl FromRef<Services> for Documents {
    fn from_ref(services: &Services) -> Self {
        Self {
            pools: services.documents().clone(),
            executions: FromRef::from_ref(services),
            failures: FromRef::from_ref(services),
            reports: FromRef::from_ref(services),
            artifacts: FromRef::from_ref(services),
            projects: FromRef::from_ref(services),
            files: FromRef::from_ref(services),
        }
    }
}

/// A document as a file, and the id of its execution.
pub(crate) struct File {
    pub(crate) execution_id: String,
    pub(crate) body: Body,
}

/// A document with its turn.
struct Made {
    execution_id: String,
    document: Document,
    /// Size of the pictures, in bytes.
    pictures: usize,
    turn: Share,
}

impl Documents {
    /// Returns the document of an execution as HTML.
    pub(crate) async fn html(
        mut self,
        caller: &Caller,
        path: (String, String),
    ) -> Result<File, Problem> {
        let Made { execution_id, document, pictures, turn } = self.make(caller, path).await?;
        let memory = self.memory(caller.customer, TEXTS + pictures / 3 * 4).await?;
        drop(turn);
        let body = body(assay_document::html(document), memory);
        Ok(File { execution_id, body })
    }

    /// Returns the document of an execution as PDF.
    pub(crate) async fn pdf(
        mut self,
        caller: &Caller,
        path: (String, String),
    ) -> Result<File, Problem> {
        let Made { execution_id, document, turn, .. } = self.make(caller, path).await?;
        // The turn ends with the work, even if the client has gone.
        let written = spawn_blocking(move || (assay_document::pdf(document, LAYOUTS), turn));
        let (written, turn) = written.await.map_err(|error| failed(&error))?;
        let Pdf { file, nonconformance } = written.map_err(|error| failed(&error))?;
        if let Some(reason) = nonconformance {
            tracing::warn!(reason, "a document does not conform to PDF/UA-1 and PDF/A-2a");
        }
        let file = Bytes::from(file);
        let memory = self.memory(caller.customer, file.len()).await?;
        drop(turn);
        let body = body(pieces(file), memory);
        Ok(File { execution_id, body })
    }

    async fn memory(&self, customer: CustomerId, bytes: usize) -> Result<Share, Problem> {
        let units = bytes.div_ceil(UNIT);
        Ok(self.pools.memory.acquire_many_within(customer, units, PATIENCE).await?)
    }

    /// Reads the facts of an execution and the template of its project.
    async fn make(
        &mut self,
        caller: &Caller,
        (project_id, id): (String, String),
    ) -> Result<Made, Problem> {
        let turn = self.pools.making.acquire_within(caller.customer, PATIENCE).await?;
        let request = GetExecutionSummaryRequest { project_id: unless_zero(project_id), id };
        let summary =
            self.executions.get_execution_summary(caller.call(request)).await?.into_inner();
        let (project, template) = self.project(caller, &summary.project_id).await?;
        let mut report = self.facts(caller, &summary).await?;
        report.project = project;
        report.causes = self.causes(caller, &summary).await?;
        let (tests, entries) = self.tests(caller, &summary).await?;
        report.tests = tests;
        let pictures = self.add_failures(caller, &summary, entries, &mut report).await?;
        report.notes.extend(template.notes);
        let pictures = pictures + template.logo.as_ref().map_or(0, Picture::bytes);
        let document = compose(report, &template.template, template.logo);
        let execution_id = summary.execution.unwrap_or_default().id;
        Ok(Made { execution_id, document, pictures, turn })
    }

    /// Adds the tests that fail, with their steps. Returns the size of their pictures, in bytes.
    async fn add_failures(
        &mut self,
        caller: &Caller,
        summary: &ExecutionSummary,
        entries: Vec<Entry>,
        report: &mut Report,
    ) -> Result<usize, Problem> {
        let mut budget = failure::Budget::until(Instant::now() + READING);
        let total = entries.len();
        let mut items = Vec::new();
        for entry in entries.into_iter().take(failure::MOST) {
            if budget.is_spent() {
                break;
            }
            let failure = self.failure(caller, &summary.project_id, entry, &mut budget).await?;
            items.push(failure);
        }
        let failing = usize::try_from(failing(summary)).unwrap_or_default().max(total);
        report.failures = Listed { left_out: failing - items.len(), items };
        Ok(budget.picture_bytes())
    }
}

/// Returns the number of test cases that fail.
fn failing(summary: &ExecutionSummary) -> i32 {
    let statistic = summary.execution.as_ref().and_then(|execution| execution.statistic.as_ref());
    statistic.map_or(0, |counts| {
        counts.test_cases_failed + counts.test_cases_with_error + counts.test_cases_aborted
    })
}

/// Parts of a file, and the memory that they take until the client has them.
struct Held<I> {
    parts: I,
    _memory: Share,
}

impl<I: Iterator<Item = Bytes>> Iterator for Held<I> {
    type Item = Result<Bytes, Infallible>;

    fn next(&mut self) -> Option<Self::Item> {
        self.parts.next().map(Ok)
    }
}

fn body(parts: impl Iterator<Item = Bytes> + Send + 'static, memory: Share) -> Body {
    Body::from_stream(stream::iter(Held { parts, _memory: memory }))
}

/// Divides a file into pieces that are sent one after the other.
fn pieces(mut file: Bytes) -> impl Iterator<Item = Bytes> {
    std::iter::from_fn(move || {
        let piece = file.split_to(file.len().min(UNIT));
        (!piece.is_empty()).then_some(piece)
    })
}

fn failed(error: &dyn Display) -> Problem {
    tracing::error!(%error, "a document cannot be written");
    Problem::internal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_sent_in_pieces() {
        let file = Bytes::from(vec![7; 3 * UNIT + 1]);
        let lengths: Vec<_> = pieces(file).map(|piece| piece.len()).collect();
        assert_eq!(lengths, [UNIT, UNIT, UNIT, 1]);
        assert_eq!(pieces(Bytes::new()).count(), 0);
    }
}
