//! Exports an execution as the report of a test run.

mod ctrf;
mod instance;
mod junit;
mod lines;
mod store;
mod writer;

use std::{collections::VecDeque, slice};

use assay_ledger::{
    execution,
    instance::steps::{self, StoredStep},
    progress::{execution::ExecutionState, instance::Outcome},
};
use assay_proto::{
    CustomerId, ExecutionId, ExecutionStatistic, Fault, TestReportId, TestResult,
    execution::{ReportFormat, ResultsBatch, TestReport},
};
use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use sqlx::PgPool;

use self::{
    instance::{Instance, Totals},
    store::StoredInstance,
    writer::Writer,
};
use crate::test_report::list::{ListedReport, of_execution};

/// Number of reports whose instances one query reads.
const REPORTS: usize = 100;

/// Maximum number of instances in memory.
const INSTANCES: i64 = 32;

/// Maximum size of a message, in bytes.
const MESSAGE: usize = 256 << 10;

/// Returns the file in chunks.
pub(super) async fn file(
    db: PgPool,
    customer: CustomerId,
    id: ExecutionId,
    state: &ExecutionState,
    format: ReportFormat,
) -> Result<impl Stream<Item = Result<ResultsBatch, Fault>> + Send + use<>, Fault> {
    let reports = of_execution(db.clone(), customer, id);
    if format == ReportFormat::Lines {
        let lines = if execution::store::has_expired(&db, customer, id).await? {
            reports.map(|part| lines::summaries(&part?)).boxed()
        } else {
            lines::all(db, customer, reports).boxed()
        };
        return Ok(lines.map_ok(chunks).try_flatten().boxed());
    }
    let writer = Writer::of(format);
    let end = writer.clone();
    let end = stream::once(async move { Ok(end.close()) });
    let (totals, tests) = if execution::store::has_expired(&db, customer, id).await? {
        let writer = writer.clone();
        let tests = reports.map_ok(move |part| summaries(&writer, &part));
        (totals(&state.statistic), tests.boxed())
    } else {
        let totals = store::totals(&db, customer, id).await?;
        (totals, all_tests(db, customer, writer.clone(), reports).boxed())
    };
    let beginning = stream::iter([Ok(writer.open(state, totals))]);
    let file = beginning.chain(tests).chain(end);
    Ok(file.map_ok(chunks).try_flatten().boxed())
}

/// Returns every instance of every test.
fn all_tests(
    db: PgPool,
    customer: CustomerId,
    writer: Writer,
    reports: impl Stream<Item = Result<Vec<ListedReport>, Fault>> + Send,
) -> impl Stream<Item = Result<String, Fault>> + Send {
    reports
        .map_ok(|part| {
            let groups: Vec<_> = part.chunks(REPORTS).map(<[ListedReport]>::to_vec).collect();
            stream::iter(groups).map(Ok::<_, Fault>)
        })
        .try_flatten()
        .map_ok(move |reports| tests(db.clone(), customer, writer.clone(), reports))
        .try_flatten()
}

/// Returns one summary for each test whose instances have expired.
fn summaries(writer: &Writer, reports: &[ListedReport]) -> String {
    let mut text = String::new();
    for report in reports {
        let outcome = Outcome {
            result: report.result(),
            start_date_time: report.start_date_time,
            duration_in_sec: report.average_duration_in_sec,
            ..Outcome::default()
        };
        writer.test(&mut text, &instance(report, outcome, &[]));
    }
    text
}

/// Returns an instance of a report without further attempts.
fn instance<'i>(report: &'i TestReport, outcome: Outcome, steps: &'i [StoredStep]) -> Instance<'i> {
    Instance {
        identifier: &report.test_case_identifier,
        title: &report.test_case_name,
        suites: &report.suites,
        labels: &report.labels,
        links: &report.links,
        variant: "",
        outcome,
        steps,
        earlier: &[],
    }
}

/// Returns the totals of an execution's reports.
fn totals(statistic: &ExecutionStatistic) -> Totals {
    let errors = statistic.test_cases_with_error + statistic.test_cases_aborted;
    let skipped = statistic.test_cases_canceled + statistic.test_cases_pending;
    Totals {
        tests: statistic.test_cases_total.into(),
        failures: statistic.test_cases_failed.into(),
        errors: errors.into(),
        skipped: skipped.into(),
    }
}

/// Splits a text into chunks that fit into a message.
fn chunks(text: String) -> impl Stream<Item = Result<ResultsBatch, Fault>> + Send {
    let mut rest = Bytes::from(text);
    let chunks = std::iter::from_fn(move || {
        let chunk = rest.split_to(rest.len().min(MESSAGE));
        (!chunk.is_empty()).then_some(Ok(ResultsBatch { chunk }))
    });
    stream::iter(chunks)
}

/// The progress of an export of reports.
struct Export {
    writer: Writer,
    reports: Vec<ListedReport>,
    /// The index of the report whose instances come next.
    report: usize,
    /// The number of its last written instance.
    after: i32,
    /// How many of its instances were written.
    written: i32,
    /// Instances that were read but not written yet, each with the index of its report.
    read: VecDeque<(usize, StoredInstance)>,
    /// Whether all instances were read.
    is_complete: bool,
}

/// Returns the tests of reports, in parts of bounded size.
fn tests(
    db: PgPool,
    customer: CustomerId,
    writer: Writer,
    reports: Vec<ListedReport>,
) -> impl Stream<Item = Result<String, Fault>> + Send {
    let read = VecDeque::new();
    let export =
        Export { writer, reports, report: 0, after: 0, written: 0, read, is_complete: false };
    stream::try_unfold((db, export), move |(db, mut export)| async move {
        let mut text = String::new();
        while export.report < export.reports.len() && text.len() < MESSAGE {
            if export.read.is_empty() && !export.is_complete {
                export.read(&db, customer).await?;
            }
            export.write(&mut text)?;
        }
        Ok((!text.is_empty()).then_some((text, (db, export))))
    })
}

impl Export {
    /// Reads the next instances.
    async fn read(&mut self, db: &PgPool, customer: CustomerId) -> Result<(), Fault> {
        let first = self.report;
        let ids: Result<Vec<_>, Fault> =
            self.reports[first..].iter().map(|r| TestReportId::from_path(&r.id)).collect();
        let found = store::next(db, customer, &ids?, self.after, INSTANCES).await?;
        self.is_complete = i64::try_from(found.len()).is_ok_and(|count| count < INSTANCES);
        for instance in found {
            let index = usize::try_from(instance.report_nr - 1).map_err(Fault::internal)?;
            self.read.push_back((first + index, instance));
        }
        Ok(())
    }

    /// Writes the next instance, a missing one, or goes on to the next report.
    fn write(&mut self, text: &mut String) -> Result<(), Fault> {
        let report = &self.reports[self.report];
        let is_next = |(report, _): &mut (usize, StoredInstance)| *report == self.report;
        if let Some((_, stored)) = self.read.pop_front_if(is_next) {
            let steps = steps::read::<StoredStep>(&stored.stored_steps)?;
            let (variant, earlier) = (stored.variant.as_str(), &stored.earlier()?[..]);
            let instance = instance(report, stored.outcome()?, &steps);
            self.writer.test(text, &Instance { variant, earlier, ..instance });
            self.after = stored.instance_nr;
            self.written += 1;
        } else if self.read.is_empty() && !self.is_complete {
            // More of this report may come.
        } else if self.written < report.requested_instances_count {
            let (result, reason) = missing(report);
            let step = StoredStep {
                result: result.into(),
                actual_result: reason.to_owned(),
                ..StoredStep::default()
            };
            let outcome = Outcome { result, ..Outcome::default() };
            self.writer.test(text, &instance(report, outcome, slice::from_ref(&step)));
            self.written += 1;
        } else {
            self.report += 1;
            (self.after, self.written) = (0, 0);
        }
        Ok(())
    }
}

/// Returns the result of a missing instance, and its reason.
fn missing(report: &ListedReport) -> (TestResult, &'static str) {
    match report.missing_result() {
        TestResult::NotExecuted => (TestResult::NotExecuted, "not executed yet"),
        TestResult::Canceled => (TestResult::Canceled, "canceled"),
        result => (result, "no result was reported"),
    }
}
