//! Gives an execution back as the JUnit XML of a test run.

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

/// How many reports are looked at together, and how many instances are held.
const REPORTS: usize = 100;
const INSTANCES: i64 = 32;

/// How much one message carries, in bytes.
const MESSAGE: usize = 256 << 10;

/// The file, piece by piece.
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
    Ok(file.map_ok(pieces).try_flatten())
}

/// Every run of every test.
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

/// What is left of tests whose runs are not kept any more.
fn summaries(reports: &[TestReport]) -> String {
    let mut xml = String::new();
    for report in reports {
        let outcome = Outcome {
            result: report.result(),
            start_date_time: report.start_date_time,
            duration_in_sec: report.average_duration_in_sec,
            ..Outcome::default()
        };
        writer::test(&mut xml, &report.test_case_identifier, &report.test_case_name, &outcome, &[]);
    }
    xml
}

/// How the reports of an execution ended.
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

/// Cuts a text so that each piece fits into a message.
fn pieces(text: String) -> impl Stream<Item = Result<ResultsBatch, Fault>> + Send {
    let mut rest = Bytes::from(text);
    let pieces = std::iter::from_fn(move || {
        let piece = rest.split_to(rest.len().min(MESSAGE));
        (!piece.is_empty()).then_some(Ok(ResultsBatch { chunk: piece }))
    });
    stream::iter(pieces)
}

/// How far the tests of some reports were written.
struct Rest {
    reports: Vec<TestReport>,
    /// The report whose instances come next.
    report: usize,
    /// The last of its instances that was written, and how many were.
    after: i32,
    written: i32,
    /// Instances that were read and not written yet, each with its report.
    found: VecDeque<(usize, StoredInstance)>,
    /// Whether no more are to be read.
    is_all: bool,
}

/// The tests of some reports, as XML in pieces of bounded size.
fn tests(
    db: PgPool,
    customer: CustomerId,
    reports: Vec<TestReport>,
) -> impl Stream<Item = Result<String, Fault>> + Send {
    let found = VecDeque::new();
    let rest = Rest { reports, report: 0, after: 0, written: 0, found, is_all: false };
    stream::try_unfold((db, rest), move |(db, mut rest)| async move {
        let mut xml = String::new();
        while rest.report < rest.reports.len() && xml.len() < MESSAGE {
            if rest.found.is_empty() && !rest.is_all {
                rest.read(&db, customer).await?;
            }
            rest.write(&mut xml)?;
        }
        Ok((!xml.is_empty()).then_some((xml, (db, rest))))
    })
}

impl Rest {
    async fn read(&mut self, db: &PgPool, customer: CustomerId) -> Result<(), Fault> {
        let first = self.report;
        let ids: Result<Vec<_>, Fault> =
            self.reports[first..].iter().map(|r| TestReportId::from_path(&r.id)).collect();
        let found = store::next(db, customer, &ids?, self.after, INSTANCES).await?;
        self.is_all = i64::try_from(found.len()).is_ok_and(|count| count < INSTANCES);
        for instance in found {
            let place = usize::try_from(instance.place - 1).map_err(Fault::internal)?;
            self.found.push_back((first + place, instance));
        }
        Ok(())
    }

    /// Writes the next test, or ends a report with those that it misses.
    fn write(&mut self, xml: &mut String) -> Result<(), Fault> {
        let report = &self.reports[self.report];
        let (identifier, name) = (&report.test_case_identifier, &report.test_case_name);
        let is_next = |(place, _): &mut (usize, StoredInstance)| *place == self.report;
        if let Some((_, instance)) = self.found.pop_front_if(is_next) {
            let steps = steps::read::<StoredStep>(&instance.stored_steps)?;
            writer::test(xml, identifier, name, &instance.outcome()?, &steps);
            self.after = instance.instance_nr;
            self.written += 1;
        } else if self.found.is_empty() && !self.is_all {
            // More of this report may come.
        } else if self.written < report.requested_instances_count {
            let (result, reason) = missing(report);
            let step = StoredStep {
                result: result.into(),
                actual_result: reason.to_owned(),
                ..StoredStep::default()
            };
            let outcome = Outcome { result, ..Outcome::default() };
            writer::test(xml, identifier, name, &outcome, slice::from_ref(&step));
            self.written += 1;
        } else {
            self.report += 1;
            (self.after, self.written) = (0, 0);
        }
        Ok(())
    }
}

/// How an instance ended that there is no result of.
fn missing(report: &TestReport) -> (TestResult, &'static str) {
    match result_of_missing(report.status()) {
        TestResult::NotExecuted => (TestResult::NotExecuted, "not executed yet"),
        TestResult::Canceled => (TestResult::Canceled, "canceled"),
        result => (result, "no result was reported"),
    }
}
