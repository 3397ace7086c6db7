//! The state of a new execution, and the ids of its reports.

use assay_auth::Caller;
use assay_proto::{
    ExecutionId, ExecutionStatistic, ExecutionStatus, ProjectId, TestReportId, TestResult,
    TestSetId, Timestamp,
    catalog::Snapshot,
    execution::{Execution, ExecutionMode, OpenExecutionInput},
};
use uuid::Uuid;

use super::ExecutionState;
use crate::origin::Origin;

impl ExecutionState {
    /// Creates an execution of a test set that was copied from the catalog.
    pub fn new(
        caller: &Caller,
        id: ExecutionId,
        (project, set): (ProjectId, TestSetId),
        snapshot: Snapshot,
        origin: Origin,
        mode: ExecutionMode,
    ) -> Self {
        let id = id.to_string();
        let (subject, environment) = (snapshot.subject.as_ref(), snapshot.environment.as_ref());
        let mut execution = Execution {
            id: id.clone(),
            project_id: project.to_string(),
            test_set_id: set.to_string(),
            test_set_name: snapshot.test_set_name,
            software_version_id: subject.map(|subject| subject.id.clone()),
            software_version: subject.map(|subject| subject.identifier.clone()),
            software_name: subject.map(|subject| subject.name.clone()),
            environment_id: environment.map(|environment| environment.id.clone()),
            environment_name: environment.map(|environment| environment.name.clone()),
            request_user: caller.name.to_string(),
            tags: origin.tags.or(snapshot.tags).unwrap_or_default(),
            branch: origin.branch,
            commit: origin.commit,
            build: origin.build,
            ci_url: origin.ci_url,
            stop_on_failure: snapshot.stop_on_failure,
            time_out: snapshot.time_out,
            ..Execution::default()
        };
        execution.set_status(ExecutionStatus::Queued);
        execution.set_result(TestResult::NotExecuted);
        let statistic = ExecutionStatistic {
            execution_id: id,
            environment_id: execution.environment_id.clone(),
            environment_name: execution.environment_name.clone(),
            software_version_id: execution.software_version_id.clone(),
            software_version: execution.software_version.clone(),
            software_name: execution.software_name.clone(),
            tags: execution.tags.clone(),
            ..ExecutionStatistic::default()
        };
        let requested_by_id = caller.user.to_string();
        let mode = mode.into();
        let (default_branch, gate) = (snapshot.default_branch, snapshot.gate.unwrap_or_default());
        Self {
            execution,
            statistic,
            mode,
            requested_by_id,
            default_branch,
            gate,
            revision: 1,
            ..Self::default()
        }
    }

    /// Backdates a new execution, and replaces its id: ids have the time of the request, by which lists and
    /// histories are ordered.
    pub fn move_to_past(&mut self, request_time: Timestamp, end: Timestamp) {
        let seconds = u64::try_from(request_time.0.timestamp()).unwrap_or_default();
        let time = numbered(seconds, request_time.0.timestamp_subsec_nanos(), 0);
        let id = Uuid::new_v7(time).to_string();
        self.execution.id.clone_from(&id);
        self.statistic.execution_id = id;
        self.execution.request_time = Some(request_time);
        self.past_end = Some(end);
    }

    /// Opens a new execution: it adopts test cases as their results arrive.
    pub fn open(&mut self, input: &OpenExecutionInput, grace_in_sec: i32) {
        let execution = &mut self.execution;
        execution.is_open = true;
        execution.key.clone_from(&input.key);
        execution.reporters = input.reporters;
        execution.grace_in_sec = Some(grace_in_sec);
        // Its clients run the tests, and no list says which have not started.
        execution.stop_on_failure = false;
        execution.set_status(ExecutionStatus::Running);
    }

    /// Whether the execution belongs to the default branch of its project, as one without a branch does. Valid only
    /// where the default branch is known.
    pub fn is_of_default_branch(&self) -> bool {
        self.execution
            .branch
            .as_ref()
            .is_none_or(|one| one.is_empty() || *one == self.default_branch)
    }

    /// Returns the ids of new reports. `first` is the number of the first one in the execution, from 0.
    /// They have the time of the execution, so that their results are in the partitions that are kept
    /// until it expires.
    pub fn ids_of_reports(&self, first: i32) -> impl Iterator<Item = TestReportId> + use<> {
        let id: Uuid = self.execution.id.parse().unwrap_or_default();
        let (seconds, nanoseconds) =
            id.get_timestamp().map(|time| time.to_unix()).unwrap_or_default();
        let first = u64::try_from(first).unwrap_or_default();
        (first..)
            .map(move |number| TestReportId(Uuid::new_v7(numbered(seconds, nanoseconds, number))))
    }
}

/// Number of bits of the number in the id of a report.
const NUMBER_BITS: u8 = 20;

/// Returns the time of an id. Ids of the same time are in the order of the numbers.
fn numbered(seconds: u64, nanoseconds: u32, number: u64) -> uuid::Timestamp {
    uuid::Timestamp::from_unix_time(seconds, nanoseconds, number.into(), NUMBER_BITS)
}
