//! The formats of exports.

use std::sync::{Arc, Mutex, PoisonError};

use assay_formats::{CtrfWriter, Property};
use assay_ledger::progress::execution::ExecutionState;
use assay_proto::execution::{Execution, ReportFormat};

use super::{
    ctrf,
    instance::{Instance, Totals},
    junit,
};

/// Writes a file in parts.
#[derive(Clone)]
pub(super) enum Writer {
    Junit,
    /// Counts tests while it writes them.
    Ctrf(Arc<Mutex<CtrfWriter>>),
}

impl Writer {
    pub(super) fn of(format: ReportFormat) -> Self {
        match format {
            ReportFormat::Ctrf => Self::Ctrf(Arc::default()),
            ReportFormat::Junit | ReportFormat::Lines | ReportFormat::Unspecified => Self::Junit,
        }
    }

    /// Returns the beginning of the file.
    pub(super) fn open(&self, state: &ExecutionState, totals: Totals) -> String {
        let Execution { id, test_set_name, request_time, .. } = &state.execution;
        let start = state.start_date_time.or(*request_time);
        match self {
            Self::Junit => {
                let seconds = state.duration_in_sec();
                junit::open(test_set_name, start, seconds, totals, &properties(&state.execution))
            }
            Self::Ctrf(writer) => {
                let writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
                writer.open(id, start.unwrap_or_default(), "assay")
            }
        }
    }

    /// Writes an instance of a test.
    pub(super) fn test(&self, text: &mut String, instance: &Instance<'_>) {
        match self {
            Self::Junit => junit::test(text, instance),
            Self::Ctrf(writer) => {
                let converted = ctrf::test(instance);
                writer.lock().unwrap_or_else(PoisonError::into_inner).test(text, &converted);
            }
        }
    }

    /// Returns the end of the file.
    pub(super) fn close(&self) -> String {
        match self {
            Self::Junit => junit::CLOSE.to_owned(),
            Self::Ctrf(writer) => {
                let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
                std::mem::take(&mut *writer).close()
            }
        }
    }
}

/// Returns the properties of a test run.
fn properties(execution: &Execution) -> Vec<Property> {
    let given = [
        ("Execution", Some(&execution.id)),
        ("SoftwareName", execution.software_name.as_ref()),
        ("SoftwareVersion", execution.software_version.as_ref()),
        ("EnvironmentName", execution.environment_name.as_ref()),
        ("Branch", execution.branch.as_ref()),
        ("Commit", execution.commit.as_ref()),
        ("Build", execution.build.as_ref()),
        ("CiUrl", execution.ci_url.as_ref()),
        ("Tags", Some(&execution.tags)),
    ];
    let property = |(name, value): (&str, Option<&String>)| {
        Some(Property { name: name.to_owned(), value: value?.clone() })
    };
    given.into_iter().filter_map(property).collect()
}
