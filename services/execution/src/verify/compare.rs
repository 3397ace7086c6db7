//! Differences between the stored state and the derived one.

use std::fmt::{self, Debug, Display};

use assay_ledger::progress::{execution::ExecutionState, report::TestReportState};

/// A field whose stored value differs from the derived one.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct Difference {
    pub(super) noun: String,
    pub(super) id: String,
    pub(super) field: String,
    pub(super) stored: Option<String>,
    pub(super) derived: Option<String>,
}

impl Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { noun, id, field, .. } = self;
        let (stored, derived) = (self.stored.as_deref(), self.derived.as_deref());
        let (stored, derived) = (stored.unwrap_or("null"), derived.unwrap_or("null"));
        write!(f, "{noun} {id}: {field} is {stored}, but should be {derived}")
    }
}

/// A value of a field.
#[derive(Debug)]
enum Value {
    Text(String),
    /// A sum, whose last digits depend on the order.
    Sum(f64),
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Sum(one), Self::Sum(other)) => {
                (one - other).abs() <= 1e-6 * other.abs().max(1.0)
            }
            (Self::Text(one), Self::Text(other)) => one == other,
            _ => false,
        }
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Sum(sum) => Display::fmt(sum, f),
        }
    }
}

fn text(value: &impl ToString) -> Value {
    Value::Text(value.to_string())
}

fn name(value: impl serde::Serialize) -> Value {
    Value::Text(assay_proto::name_of(value))
}

fn time<T: Debug>(value: Option<T>) -> Value {
    Value::Text(value.map_or_else(|| "null".to_owned(), |time| format!("{time:?}")))
}

/// The fields of a report that follow from its instances.
fn report_fields(report: &TestReportState) -> [(&'static str, Value); 12] {
    let published = &report.published;
    [
        ("requested_instances_count", text(&report.requested_instances_count)),
        ("finished_instances_count", text(&report.finished_instances_count)),
        ("result", name(published.result())),
        ("status", name(published.status())),
        ("start_date_time", time(published.start_date_time)),
        ("finish_date_time", time(published.finish_date_time)),
        ("total_duration_in_sec", Value::Sum(report.total_duration_in_sec)),
        ("average_duration_in_sec", Value::Sum(published.average_duration_in_sec)),
        ("change", name(published.change())),
        ("change_reason", text(&report.change_reason)),
        ("is_flaky", text(&report.is_flaky)),
        ("is_muted", text(&report.is_muted())),
    ]
}

/// The fields of an execution that follow from its reports.
fn execution_fields(state: &ExecutionState) -> [(&'static str, Value); 12] {
    let (execution, statistic) = (&state.execution, &state.statistic);
    [
        ("result", name(execution.result())),
        ("status", name(execution.status())),
        ("test_cases_total", text(&statistic.test_cases_total)),
        ("test_cases_pending", text(&statistic.test_cases_pending)),
        ("test_cases_canceled", text(&statistic.test_cases_canceled)),
        ("test_cases_aborted", text(&statistic.test_cases_aborted)),
        ("test_cases_with_error", text(&statistic.test_cases_with_error)),
        ("test_cases_passed", text(&statistic.test_cases_passed)),
        ("test_cases_failed", text(&statistic.test_cases_failed)),
        ("start_date_time", time(state.start_date_time)),
        ("finish_date_time", time(state.finish_date_time)),
        ("total_duration_in_sec", Value::Sum(state.total_duration_in_sec)),
    ]
}

fn differences<const N: usize>(
    noun: &str,
    id: &str,
    stored: [(&'static str, Value); N],
    derived: [(&'static str, Value); N],
) -> impl Iterator<Item = Difference> {
    let differ =
        stored.into_iter().zip(derived).filter(|((_, stored), (_, derived))| stored != derived);
    differ.map(move |((field, stored), (_, derived))| Difference {
        noun: noun.to_owned(),
        id: id.to_owned(),
        field: field.to_owned(),
        stored: Some(stored.to_string()),
        derived: Some(derived.to_string()),
    })
}

pub(super) fn of_report<'r>(
    stored: &'r TestReportState,
    derived: &TestReportState,
) -> impl Iterator<Item = Difference> + use<'r> {
    let fields = (report_fields(stored), report_fields(derived));
    differences("test report", &stored.published.id, fields.0, fields.1)
}

pub(super) fn of_execution<'e>(
    stored: &'e ExecutionState,
    derived: &ExecutionState,
) -> impl Iterator<Item = Difference> + use<'e> {
    let fields = (execution_fields(stored), execution_fields(derived));
    differences("execution", &stored.execution.id, fields.0, fields.1)
}
