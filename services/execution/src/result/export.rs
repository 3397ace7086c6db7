//! Exports an execution as the report of a test run.

mod ctrf;
mod cursor;
mod instance;
mod junit;
mod lines;
mod store;
mod writer;

use std::slice;

use assay_ledger::{
    execution,
    instance::steps::{self, StoredStep},
    progress::{execution::ExecutionState, instance::Outcome},
};
use assay_proto::{
    CustomerId, ExecutionId, ExecutionStatistic, Fault, TestResult,
    execution::{ReportFormat, ResultsBatch, TestReport},
};
use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use sqlx::PgPool;

use self::{
    cursor::Next,
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

/// Returns the tests of reports, in parts of bounded size.
fn tests(
    db: PgPool,
    customer: CustomerId,
    writer: Writer,
    reports: Vec<ListedReport>,
) -> impl Stream<Item = Result<String, Fault>> + Send {
    let read = move |ids: Vec<_>, (after, _): (i32, i32)| {
        let db = db.clone();
        async move {
            let found = store::next(&db, customer, &ids, after, INSTANCES).await?;
            let is_complete = i64::try_from(found.len()).is_ok_and(|count| count < INSTANCES);
            Ok((found, is_complete))
        }
    };
    let write =
        move |text: &mut String, report: &ListedReport, next| write(&writer, text, report, next);
    cursor::texts(reports, read, write)
}

/// Writes an instance of a report.
fn write(
    writer: &Writer,
    text: &mut String,
    report: &ListedReport,
    next: Next<StoredInstance>,
) -> Result<(), Fault> {
    match next {
        Next::Stored(stored) => {
            let steps = steps::read::<StoredStep>(&stored.stored_steps)?;
            let (variant, earlier) = (stored.variant.as_str(), &stored.earlier()?[..]);
            let instance = instance(report, stored.outcome()?, &steps);
            writer.test(text, &Instance { variant, earlier, ..instance });
        }
        Next::Missing(_) => {
            let (result, reason) = missing(report);
            let step = StoredStep {
                result: result.into(),
                actual_result: reason.to_owned(),
                ..StoredStep::default()
            };
            let outcome = Outcome { result, ..Outcome::default() };
            writer.test(text, &instance(report, outcome, slice::from_ref(&step)));
        }
    }
    Ok(())
}

/// Returns the result of a missing instance, and its reason.
fn missing(report: &ListedReport) -> (TestResult, &'static str) {
    match report.missing_result() {
        TestResult::NotExecuted => (TestResult::NotExecuted, "not executed yet"),
        TestResult::Canceled => (TestResult::Canceled, "canceled"),
        result => (result, "no result was reported"),
    }
}
