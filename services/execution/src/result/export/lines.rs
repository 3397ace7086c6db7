//! Results as clients report them, one JSON object per line: each attempt is a line, those of an
//! instance in their order.

use std::collections::VecDeque;

use assay_ledger::instance::steps::{self, StoredStep};
use assay_proto::{
    CustomerId, Fault, Label, Link, TestReportId, TestResult, Timestamp, execution::TestReport,
};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use serde::Serialize;
use sqlx::PgPool;

use super::{
    MESSAGE, REPORTS,
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

/// The progress through some reports.
struct Lines {
    reports: Vec<ListedReport>,
    /// The index of the report whose attempts come next.
    report: usize,
    /// The numbers of its last written instance and attempt.
    after: (i32, i32),
    /// How many of its instances were written.
    written: i32,
    /// Attempts that were read but not written yet, each with the index of its report.
    read: VecDeque<(usize, StoredAttempt)>,
    /// Whether all attempts were read.
    is_complete: bool,
}

fn of_reports(
    db: PgPool,
    customer: CustomerId,
    reports: Vec<ListedReport>,
) -> impl Stream<Item = Result<String, Fault>> + Send {
    let read = VecDeque::new();
    let lines = Lines { reports, report: 0, after: (0, 0), written: 0, read, is_complete: false };
    stream::try_unfold((db, lines), move |(db, mut lines)| async move {
        let mut text = String::new();
        while lines.report < lines.reports.len() && text.len() < MESSAGE {
            if lines.read.is_empty() && !lines.is_complete {
                lines.read(&db, customer).await?;
            }
            lines.write(&mut text)?;
        }
        Ok((!text.is_empty()).then_some((text, (db, lines))))
    })
}

impl Lines {
    /// Reads the next attempts.
    async fn read(&mut self, db: &PgPool, customer: CustomerId) -> Result<(), Fault> {
        let first = self.report;
        let ids: Result<Vec<_>, Fault> =
            self.reports[first..].iter().map(|r| TestReportId::from_path(&r.id)).collect();
        let limits = (ATTEMPTS, READ);
        let (found, is_complete) =
            store::next_attempts(db, customer, &ids?, self.after, limits).await?;
        self.is_complete = is_complete;
        for attempt in found {
            let index = usize::try_from(attempt.report_nr - 1).map_err(Fault::internal)?;
            self.read.push_back((first + index, attempt));
        }
        Ok(())
    }

    /// Writes the next attempt, a missing instance, or goes on to the next report.
    fn write(&mut self, text: &mut String) -> Result<(), Fault> {
        let report = &self.reports[self.report];
        let is_next = |(report, _): &mut (usize, StoredAttempt)| *report == self.report;
        if let Some((_, stored)) = self.read.pop_front_if(is_next) {
            write(text, &line(report, &stored)?)?;
            self.written += i32::from(stored.instance_nr != self.after.0);
            self.after = (stored.instance_nr, stored.attempt);
        } else if self.read.is_empty() && !self.is_complete {
            // More of this report may come.
        } else if self.written < report.requested_instances_count {
            self.written += 1;
            write(text, &missing(report, self.written, report.missing_result()))?;
        } else {
            self.report += 1;
            (self.after, self.written) = ((0, 0), 0);
        }
        Ok(())
    }
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
