//! Results as clients report them, one JSON object per line: each attempt is a line, those of an
//! instance in their order.

use assay_ledger::instance::steps::{self, StoredStep};
use assay_proto::{CustomerId, Fault, Label, Link, TestResult, Timestamp, execution::TestReport};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use serde::Serialize;
use sqlx::PgPool;

use super::{
    REPORTS,
    cursor::{self, Next},
    store::{self, StoredAttempt},
};
use crate::test_report::list::ListedReport;

/// Number of attempts, and about how many bytes of them, that one query reads.
const ATTEMPTS: i64 = 1000;
const READ: usize = 1 << 20;

/// A result as clients report it. Absent fields are omitted.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Line<'l> {
    identifier: &'l str,
    name: &'l str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_nr: Option<i32>,
    #[serde(skip_serializing_if = "str::is_empty")]
    reporter: &'l str,
    #[serde(skip_serializing_if = "str::is_empty")]
    variant: &'l str,
    #[serde(skip_serializing_if = "is_first")]
    attempt: i32,
    result: TestResult,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_date_time: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_date_time: Option<Timestamp>,
    duration_in_sec: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<StoredStep>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    suites: &'l [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    labels: &'l [Label],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    links: &'l [Link],
    #[serde(skip_serializing_if = "str::is_empty")]
    artifacts_uri: &'l str,
    #[serde(skip_serializing_if = "str::is_empty")]
    report_uri: &'l str,
    #[serde(skip_serializing_if = "str::is_empty")]
    debug_log_uri: &'l str,
    #[serde(skip_serializing_if = "str::is_empty")]
    execution_log_uri: &'l str,
    #[serde(skip_serializing_if = "str::is_empty")]
    installation_log_uri: &'l str,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_first(attempt: &i32) -> bool {
    *attempt == 1
}

/// Returns the lines of all attempts at the instances of reports.
pub(super) fn all(
    db: PgPool,
    customer: CustomerId,
    reports: impl Stream<Item = Result<Vec<ListedReport>, Fault>> + Send,
) -> impl Stream<Item = Result<String, Fault>> + Send {
    reports
        .map_ok(|part| {
            let groups: Vec<_> = part.chunks(REPORTS).map(<[ListedReport]>::to_vec).collect();
            stream::iter(groups).map(Ok::<_, Fault>)
        })
        .try_flatten()
        .map_ok(move |reports| of_reports(db.clone(), customer, reports))
        .try_flatten()
}

/// Returns a line for each report whose instances have expired.
pub(super) fn summaries(reports: &[ListedReport]) -> Result<String, Fault> {
    let mut text = String::new();
    for report in reports {
        let line = Line {
            start_date_time: report.start_date_time,
            finish_date_time: report.finish_date_time,
            duration_in_sec: report.average_duration_in_sec,
            ..missing(report, 1, report.result())
        };
        write(&mut text, &line)?;
    }
    Ok(text)
}

fn of_reports(
    db: PgPool,
    customer: CustomerId,
    reports: Vec<ListedReport>,
) -> impl Stream<Item = Result<String, Fault>> + Send {
    let read = move |ids: Vec<_>, after| {
        let db = db.clone();
        async move { store::next_attempts(&db, customer, &ids, after, (ATTEMPTS, READ)).await }
    };
    let write_next = |text: &mut String, report: &ListedReport, next| match next {
        Next::Stored(stored) => write(text, &line(report, &stored)?),
        Next::Missing(nr) => write(text, &missing(report, nr, report.missing_result())),
    };
    cursor::texts(reports, read, write_next)
}

fn line<'l>(report: &'l TestReport, stored: &'l StoredAttempt) -> Result<Line<'l>, Fault> {
    let is_named = !stored.reporter.is_empty() || !stored.variant.is_empty();
    let outcome = stored.outcome()?;
    Ok(Line {
        instance_nr: (!is_named).then_some(stored.instance_nr),
        reporter: &stored.reporter,
        variant: &stored.variant,
        attempt: stored.attempt,
        start_date_time: outcome.start_date_time,
        finish_date_time: outcome.finish_date_time,
        duration_in_sec: outcome.duration_in_sec,
        steps: steps::read(&stored.steps)?,
        artifacts_uri: &stored.artifacts_uri,
        report_uri: &stored.report_uri,
        debug_log_uri: &stored.debug_log_uri,
        execution_log_uri: &stored.execution_log_uri,
        installation_log_uri: &stored.installation_log_uri,
        ..missing(report, stored.instance_nr, outcome.result)
    })
}

/// Returns the line of an instance of which only the result is known.
fn missing(report: &TestReport, instance_nr: i32, result: TestResult) -> Line<'_> {
    Line {
        identifier: &report.test_case_identifier,
        name: &report.test_case_name,
        instance_nr: Some(instance_nr),
        reporter: "",
        variant: "",
        attempt: 1,
        result,
        start_date_time: None,
        finish_date_time: None,
        duration_in_sec: 0.0,
        steps: Vec::new(),
        suites: &report.suites,
        labels: &report.labels,
        links: &report.links,
        artifacts_uri: "",
        report_uri: "",
        debug_log_uri: "",
        execution_log_uri: "",
        installation_log_uri: "",
    }
}

fn write(text: &mut String, line: &Line<'_>) -> Result<(), Fault> {
    text.push_str(&serde_json::to_string(line).map_err(Fault::internal)?);
    text.push('\n');
    Ok(())
}
