//! The state of an execution. Its row is locked while the state changes.

mod created;
mod published;
#[cfg(test)]
mod tests;

use assay_proto::{
    EnumColumn, ExecutionStatistic, ExecutionStatus, LONGEST_DURATION, TestResult, Timestamp,
    catalog::Gate,
    events::FailedTestCase,
    execution::{Execution, ExecutionMode},
    worst,
};
use uuid::Uuid;

use crate::progress::{
    instance::Outcome,
    report::TestReportState,
    rules::{earliest, overall},
    totals::ReportTotals,
};

/// The results of which an execution counts the ended reports.
const COUNTED: [TestResult; 5] = [
    TestResult::Passed,
    TestResult::Failed,
    TestResult::Error,
    TestResult::Canceled,
    TestResult::Aborted,
];

/// Numbers of reporters and test cases that an execution has not reached although it has ended. Unless they are 0, it
/// does not pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct Unreached {
    /// Number of reporters that had joined or were expected, and had not completed at the end of the grace period or at
    /// the deadline.
    pub missing_reporters: i32,
    /// Number of test cases that were not run to their end because a failure has stopped the execution.
    pub stopped_test_cases: i32,
}

impl Unreached {
    /// The columns of the table `execution` with these fields.
    pub const COLUMNS: &str = "missing_reporters, stopped_test_cases";
}

/// An execution without its test reports.
#[derive(Clone, Debug, Default, sqlx::FromRow)]
pub struct ExecutionState {
    #[sqlx(flatten)]
    pub execution: Execution,
    #[sqlx(flatten)]
    pub statistic: ExecutionStatistic,
    #[sqlx(try_from = "EnumColumn<ExecutionMode>")]
    mode: i32,
    #[sqlx(rename = "request_user_id", try_from = "uuid::Uuid")]
    requested_by_id: String,
    pub start_date_time: Option<Timestamp>,
    pub finish_date_time: Option<Timestamp>,
    pub total_duration_in_sec: f64,
    /// The executions that results are compared with: those of its series, the latest first, then those of the
    /// default branch, the latest first.
    pub baseline: Vec<Uuid>,
    pub revision: i64,
    /// Whether a user has canceled it.
    pub is_canceled: bool,
    #[sqlx(flatten)]
    pub unreached: Unreached,
    /// Whether a test case has failed that is not muted.
    pub has_failed: bool,
    /// That test case, if it has failed in this transaction.
    #[sqlx(skip)]
    pub first_failure: Option<FailedTestCase>,
    /// The end of a backdated execution.
    pub past_end: Option<Timestamp>,
    /// The branch whose executions are the series of a branch without any. Set for new executions, and after
    /// [the branch has changed](crate::change::rebase).
    #[sqlx(skip)]
    pub default_branch: String,
    /// The rules for the verdict. Set for new executions only.
    #[sqlx(skip)]
    pub gate: Gate,
    /// Minutes from the request to the deadline. Set for new executions only.
    #[sqlx(skip)]
    pub deadline_in_min: f64,
}

impl ExecutionState {
    /// Whether the results were imported after the fact.
    pub fn is_past(&self) -> bool {
        self.past_end.is_some()
    }

    pub fn mode(&self) -> ExecutionMode {
        ExecutionMode::try_from(self.mode).unwrap_or_default()
    }

    pub fn has_ended(&self) -> bool {
        matches!(self.execution.status(), ExecutionStatus::Completed | ExecutionStatus::Canceled)
    }

    /// Whether a failure has canceled the tests that have not started.
    pub fn is_stopping(&self) -> bool {
        let failed = matches!(self.execution.result(), TestResult::Failed | TestResult::Error);
        self.execution.stop_on_failure && failed
    }

    pub fn is_dispatched(&self) -> bool {
        self.mode() == ExecutionMode::Dispatch
    }

    /// Adds pending reports to the counts.
    pub fn expect(&mut self, reports: usize) {
        let reports = i32::try_from(reports).unwrap_or(i32::MAX);
        self.statistic.test_cases_total += reports;
        self.statistic.test_cases_pending += reports;
    }

    /// Adds a finished instance of a report that has this result with it.
    pub fn add(&mut self, outcome: &Outcome, of_report: TestResult) {
        self.conclude(overall(self.execution.result(), of_report));
        self.start_date_time = earliest(self.start_date_time, outcome.start_date_time);
        self.finish_date_time = self.finish_date_time.max(outcome.finish_date_time);
        self.total_duration_in_sec += outcome.duration_in_sec;
    }

    /// Applies the outcomes of all reports, after some of them have changed.
    pub fn recount(&mut self, reports: &ReportTotals) {
        let results = reports.results.iter().flat_map(|result| TestResult::try_from(*result));
        self.conclude(results.fold(TestResult::NotExecuted, overall));
        self.start_date_time = reports.start_date_time;
        self.finish_date_time = reports.finish_date_time;
        self.total_duration_in_sec = reports.total_duration_in_sec;
    }

    /// Sets the result that follows from that of all reports. If the execution was canceled, it is at
    /// best `Canceled`, even if every test so far has passed. This alone decides it, while results arrive
    /// and when they are verified.
    pub fn conclude(&mut self, of_reports: TestResult) {
        let canceled = if self.is_canceled { TestResult::Canceled } else { of_reports };
        let is_cut = self.unreached.missing_reporters > 0;
        let cut = if is_cut { TestResult::Aborted } else { of_reports };
        self.execution.set_result(worst(worst(of_reports, canceled), cut));
    }

    /// Whether the result may be that of a report that passed at first and was then canceled: then only
    /// the other reports decide whether one passes.
    pub fn is_unsure(&self) -> bool {
        self.execution.result() == TestResult::Passed && self.statistic.test_cases_passed == 0
    }

    /// Counts all reports and applies their outcomes.
    pub fn count_all(&mut self, reports: &[TestReportState]) {
        let statistic = &mut self.statistic;
        (statistic.test_cases_total, statistic.test_cases_pending) = (0, 0);
        for result in COUNTED {
            *self.count(result) = 0;
        }
        self.expect(reports.len());
        for result in reports.iter().filter_map(TestReportState::ended_result) {
            self.statistic.test_cases_pending -= 1;
            *self.count(result) += 1;
        }
        self.recount(&totals(reports));
    }

    /// Counts a report as pending again that had ended with this result.
    pub fn reopen_report(&mut self, result: TestResult) {
        self.statistic.test_cases_pending += 1;
        *self.count(result) -= 1;
    }

    /// Counts a report that has ended with this result.
    pub fn end_report(&mut self, result: TestResult) {
        self.conclude(overall(self.execution.result(), result));
        self.statistic.test_cases_pending -= 1;
        *self.count(result) += 1;
    }

    /// Returns the number of ended reports with this result.
    fn count(&mut self, result: TestResult) -> &mut i32 {
        let statistic = &mut self.statistic;
        match result {
            TestResult::Passed => &mut statistic.test_cases_passed,
            TestResult::Failed => &mut statistic.test_cases_failed,
            TestResult::Error => &mut statistic.test_cases_with_error,
            TestResult::Canceled => &mut statistic.test_cases_canceled,
            TestResult::Aborted | TestResult::NotExecuted | TestResult::Unspecified => {
                &mut statistic.test_cases_aborted
            }
        }
    }

    pub fn complete(&mut self) {
        self.execution.set_status(ExecutionStatus::Completed);
    }

    /// Notes the number of reporters that have not completed in time.
    pub fn miss(&mut self, reporters: i32) {
        self.unreached.missing_reporters = reporters;
        self.conclude(self.execution.result());
    }

    pub fn cancel(&mut self) {
        self.execution.set_status(ExecutionStatus::Canceled);
        self.is_canceled = true;
        self.conclude(self.execution.result());
    }

    /// Returns the time from the first start to the last finish if both were reported and it is plausible, and the
    /// sum of all durations otherwise.
    pub fn duration_in_sec(&self) -> f64 {
        let times = self.start_date_time.zip(self.finish_date_time);
        let between = times.map(|(start, finish)| (finish.0 - start.0).as_seconds_f64());
        match between {
            Some(seconds) if seconds > 0.0 && seconds <= LONGEST_DURATION => seconds,
            _ => self.total_duration_in_sec.min(LONGEST_DURATION),
        }
    }

    /// Returns the execution as clients see it, without its reports.
    pub fn into_details(self) -> Execution {
        Execution { statistic: Some(self.statistic), ..self.execution }
    }
}

/// Returns the totals over all reports of an execution.
fn totals(reports: &[TestReportState]) -> ReportTotals {
    let published = || reports.iter().map(|report| &report.published);
    let mut results: Vec<i32> = published().map(|report| report.result).collect();
    results.sort_unstable();
    results.dedup();
    ReportTotals {
        results,
        start_date_time: published().filter_map(|report| report.start_date_time).min(),
        finish_date_time: published().filter_map(|report| report.finish_date_time).max(),
        total_duration_in_sec: reports.iter().map(|report| report.total_duration_in_sec).sum(),
    }
}
