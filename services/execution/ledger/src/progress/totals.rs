//! The totals over the instances of a report, and over the reports of an execution.

use assay_proto::{EnumColumns, TestResult, Timestamp, worst};

/// The totals over the finished instances of a report.
#[derive(Debug, Default, PartialEq, sqlx::FromRow)]
pub struct Recount {
    pub finished_instances_count: i32,
    /// The different results.
    #[sqlx(try_from = "EnumColumns<TestResult>")]
    pub(super) results: Vec<i32>,
    pub(super) start_date_time: Option<Timestamp>,
    pub(super) finish_date_time: Option<Timestamp>,
    pub(super) total_duration_in_sec: f64,
    pub(super) is_flaky: bool,
}

impl Recount {
    pub(super) fn result(&self) -> TestResult {
        let results = self.results.iter().flat_map(|result| TestResult::try_from(*result));
        results.fold(TestResult::NotExecuted, worst)
    }
}

/// The totals over the reports of an execution.
#[derive(Debug, sqlx::FromRow)]
pub struct ReportTotals {
    /// The different results.
    #[sqlx(try_from = "EnumColumns<TestResult>")]
    pub(super) results: Vec<i32>,
    pub(super) start_date_time: Option<Timestamp>,
    pub(super) finish_date_time: Option<Timestamp>,
    pub(super) total_duration_in_sec: f64,
}
