//! The filter of lists of executions.

use assay_proto::{ExecutionStatus, TestResult, execution::ExecutionFilter};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::query::unless_empty;

/// The executions to return; all by default. Empty parameters count as absent.
#[derive(Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", default)]
#[into_params(parameter_in = Query)]
pub(super) struct Filter {
    /// Return only executions with this result.
    #[param(inline, example = "Failed")]
    #[serde(deserialize_with = "unless_empty")]
    result: Option<TestResult>,
    /// Return only executions with this status.
    #[param(inline, example = "Completed")]
    #[serde(deserialize_with = "unless_empty")]
    status: Option<ExecutionStatus>,
    /// Return only executions with this tag.
    #[param(example = "nightly")]
    tag: Option<String>,
    /// Return only executions of this branch.
    #[param(example = "main")]
    branch: Option<String>,
    /// Return only executions of this commit.
    #[param(example = "3f2c1d0")]
    commit: Option<String>,
    /// Return only executions of this build, or of this run of the CI system.
    #[param(example = "1205")]
    build: Option<String>,
    /// Return only executions of the run of the CI system at this URL.
    #[param(example = "https://ci.example.com/runs/1205")]
    ci_url: Option<String>,
    /// Return only executions in this environment.
    #[param(format = Uuid)]
    environment_id: Option<String>,
    /// Return only executions of this subject.
    #[param(format = Uuid)]
    subject_id: Option<String>,
    /// Return only executions that this user started.
    #[param(format = Uuid)]
    request_user_id: Option<String>,
    /// Return only executions requested on this day or later, as yyyy-MM-dd in UTC, or with the difference of
    /// a time zone, as `2026-03-01+02:00`.
    #[param(example = "2026-03-01")]
    #[serde(deserialize_with = "unless_empty")]
    from_date: Option<String>,
    /// Return only executions requested on this day or earlier, as yyyy-MM-dd in UTC, or with the difference of
    /// a time zone, as `2026-03-01+02:00`.
    #[param(example = "2026-03-31")]
    #[serde(deserialize_with = "unless_empty")]
    to_date: Option<String>,
    /// Return only the latest execution of each of these test sets that was completed on the branch: at most
    /// 100 ids, separated by commas. It requires `branch`.
    #[param(example = "019cade2-11c0-7d31-9a64-6f0d2b8e9c15")]
    #[serde(deserialize_with = "unless_empty")]
    latest_of: Option<String>,
}

impl From<Filter> for ExecutionFilter {
    fn from(filter: Filter) -> Self {
        Self {
            result: filter.result.unwrap_or_default().into(),
            status: filter.status.unwrap_or_default().into(),
            tag: filter.tag,
            branch: filter.branch,
            commit: filter.commit,
            build: filter.build,
            ci_url: filter.ci_url,
            environment_id: filter.environment_id,
            subject_id: filter.subject_id,
            request_user_id: filter.request_user_id,
            from_date: filter.from_date,
            to_date: filter.to_date,
            latest_of: filter.latest_of,
        }
    }
}
