//! The filter of execution statistics.

use assay_proto::{EnvironmentId, Fault, execution::ListExecutionStatisticsRequest};
use assay_records::Check;

use crate::period::Period;

/// Selects executions of a test set.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Filter {
    pub(super) period: Period,
    pub(super) tag: Option<String>,
    pub(super) environment: Option<EnvironmentId>,
}

impl Filter {
    /// Parses and checks the filter of a request.
    pub(super) fn of(request: &ListExecutionStatisticsRequest) -> Result<Self, Fault> {
        let mut check = Check::default();
        let (from, to) = (request.from_date.as_deref(), request.to_date.as_deref());
        let period = Period::of(from, to, &mut check);
        check.text("tag", request.tag.as_deref().unwrap_or_default());
        let environment =
            EnvironmentId::from_field_if_any("environmentId", request.environment_id.as_deref());
        let environment = check.read(environment)?.flatten();
        check.done()?;
        let tag = request.tag.as_deref().map(str::trim).filter(|tag| !tag.is_empty());
        Ok(Self { period, tag: tag.map(ToOwned::to_owned), environment })
    }

    /// Whether the filter may match few of the executions within its days.
    pub(super) fn is_selective(&self) -> bool {
        self.tag.is_some() || self.environment.is_some()
    }
}
