//! Exports an execution as the JUnit XML of a test run.

mod store;
mod writer;

use std::{collections::VecDeque, slice};

use assay_proto::{
    CustomerId, ExecutionId, ExecutionStatistic, Fault, TestReportId, TestResult,
    execution::{ResultsBatch, TestReport},
};
use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use sqlx::PgPool;

use self::store::StoredInstance;
use crate::{
    execution,
    instance::steps::{self, StoredStep},
    progress::{execution::ExecutionState, instance::Outcome, rules::result_of_missing},
    test_report::list::of_execution,
};

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
) -> Result<impl Stream<Item = Result<ResultsBatch, Fault>> + Send + use<>, Fault> {
    let reports = of_execution(db.clone(), customer, id);
    let (totals, tests) = if execution::store::has_expired(&db, customer, id).await? {
        (totals(&state.statistic), reports.map_ok(|part| summaries(&part)).boxed())
    } else {
        let totals = store::totals(&db, customer, id).await?;
        (totals, all_tests(db, customer, reports).boxed())
    };
    let ends = |text: String| stream::iter([Ok(text)]);
    let file = ends(open(state, totals)).chain(tests).chain(ends(writer::CLOSE.to_owned()));
    Ok(file.map_ok(chunks).try_flatten())
}

/// Returns every instance of every test.
fn all_tests(
    db: PgPool,
    customer: CustomerId,
    reports: impl Stream<Item = Result<Vec<TestReport>, Fault>> + Send,
) -> impl Stream<Item = Result<String, Fault>> + Send {
    reports
        .map_ok(|part| {
            let groups: Vec<_> = part.chunks(REPORTS).map(<[TestReport]>::to_vec).collect();
            stream::iter(groups).map(Ok::<_, Fault>)
        })
        .try_flatten()
        .map_ok(move |reports| tests(db.clone(), customer, reports))
        .try_flatten()
}

/// Returns one summary for each test whose instances have expired.
fn summaries(reports: &[TestReport]) -> String {
    let mut xml = String::new();
    for report in reports {
        let outcome = Outcome {
            result: report.result(),
            start_date_time: report.start_date_time,
            duration_in_sec: report.average_duration_in_sec,
            ..Outcome::default()
        };
        let (identifier, name) = (&report.test_case_identifier, &report.test_case_name);
        writer::test(&mut xml, identifier, name, &outcome, &[], &[]);
    }
    xml
}

/// Returns the totals of an execution's reports.
fn totals(statistic: &ExecutionStatistic) -> writer::Totals {
    let errors = statistic.test_cases_with_error + statistic.test_cases_aborted;
    let skipped = statistic.test_cases_canceled + statistic.test_cases_pending;
    writer::Totals {
        tests: statistic.test_cases_total.into(),
        failures: statistic.test_cases_failed.into(),
        errors: errors.into(),
        skipped: skipped.into(),
    }
}

/// Returns the beginning of the file.
fn open(state: &ExecutionState, totals: writer::Totals) -> String {
    let execution = &state.execution;
    let property = |name, value: &'_ Option<String>| Some((name, value.clone()?));
    let properties: Vec<(&str, String)> = [
        property("Execution", &Some(execution.id.clone())),
        property("SoftwareName", &execution.software_name),
        property("SoftwareVersion", &execution.software_version),
        property("EnvironmentName", &execution.environment_name),
        property("Tags", &Some(execution.tags.clone())),
    ]
    .into_iter()
    .flatten()
    .collect();
    let properties: Vec<(&str, &str)> =
        properties.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let start = state.start_date_time.or(execution.request_time);
    let seconds = state.duration_in_sec();
    writer::open(&execution.test_set_name, start, seconds, totals, &properties)
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
    reports: Vec<TestReport>,
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

/// Returns the tests of reports, as XML in parts of bounded size.
fn tests(
    db: PgPool,
    customer: CustomerId,
    reports: Vec<TestReport>,
) -> impl Stream<Item = Result<String, Fault>> + Send {
    let read = VecDeque::new();
    let export = Export { reports, report: 0, after: 0, written: 0, read, is_complete: false };
    stream::try_unfold((db, export), move |(db, mut export)| async move {
        let mut xml = String::new();
        while export.report < export.reports.len() && xml.len() < MESSAGE {
            if export.read.is_empty() && !export.is_complete {
                export.read(&db, customer).await?;
            }
            export.write(&mut xml)?;
        }
        Ok((!xml.is_empty()).then_some((xml, (db, export))))
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
    fn write(&mut self, xml: &mut String) -> Result<(), Fault> {
        let report = &self.reports[self.report];
        let (identifier, name) = (&report.test_case_identifier, &report.test_case_name);
        let is_next = |(report, _): &mut (usize, StoredInstance)| *report == self.report;
        if let Some((_, instance)) = self.read.pop_front_if(is_next) {
            let steps = steps::read::<StoredStep>(&instance.stored_steps)?;
            writer::test(xml, identifier, name, &instance.outcome()?, &steps, &instance.earlier()?);
            self.after = instance.instance_nr;
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
            writer::test(xml, identifier, name, &outcome, slice::from_ref(&step), &[]);
            self.written += 1;
        } else {
            self.report += 1;
            (self.after, self.written) = (0, 0);
        }
        Ok(())
    }
}

/// Returns the result of a missing instance, and its reason.
fn missing(report: &TestReport) -> (TestResult, &'static str) {
    match result_of_missing(report.status()) {
        TestResult::NotExecuted => (TestResult::NotExecuted, "not executed yet"),
        TestResult::Canceled => (TestResult::Canceled, "canceled"),
        result => (result, "no result was reported"),
    }
}
