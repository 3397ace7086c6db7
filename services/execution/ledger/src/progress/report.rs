//! The state of a test report.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use assay_proto::{
    Classification, EnumColumn, Fault, Label, Link, ReportStatus, ResultChange, TestReportId,
    TestResult, catalog::SnapshotTestCase, events::ReportState, worst,
};
use prost::Message;
use sqlx::types::Json;

use crate::progress::{
    instance::NewInstance,
    rules::{earliest, is_pending, status_of_finished},
    totals::Recount,
};

/// The reason why a report ends without all its instances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ending<'r> {
    /// The missing instances were not reported in time.
    Aborted,
    /// The missing instances are no longer to be run.
    Canceled,
    /// The missing instances are no longer to be run, because a failure has stopped the execution.
    Stopped,
    /// The engine failed or stopped renewing its lease, for this reason.
    EngineFailure(&'r str),
}

impl Ending<'_> {
    pub fn result(self) -> TestResult {
        match self {
            Self::Aborted => TestResult::Aborted,
            Self::Canceled | Self::Stopped => TestResult::Canceled,
            Self::EngineFailure(_) => TestResult::Error,
        }
    }
}

/// Name of the labels whose values are owners of a test, in any case.
const OWNER: &str = "owner";

/// Maximum number of owners of a test.
const MOST_OWNERS: usize = 10;

/// Returns the owners that labels name: each once in any case of the letters from A to Z, on one line, in one order.
fn owners(labels: &[Label]) -> Vec<String> {
    let owners = labels.iter().filter(|label| label.name.eq_ignore_ascii_case(OWNER));
    let mut owners: Vec<_> =
        owners.map(|label| label.value.replace(char::is_control, " ").trim().to_owned()).collect();
    owners.retain(|owner| !owner.is_empty());
    owners.sort_by_cached_key(|owner| (owner.to_ascii_lowercase(), owner.clone()));
    owners.dedup_by(|one, other| one.eq_ignore_ascii_case(other));
    owners.truncate(MOST_OWNERS);
    owners
}

/// The part of a test report that results change or depend on.
#[derive(Clone, Debug, Default, sqlx::FromRow)]
pub struct TestReportState {
    /// The part that events publish.
    #[sqlx(flatten)]
    pub published: ReportState,
    pub requested_instances_count: i32,
    pub finished_instances_count: i32,
    pub total_duration_in_sec: f64,
    /// Whether an instance passed after an attempt that did not.
    pub is_flaky: bool,
    /// The reason of the change; empty without one.
    pub change_reason: String,
    /// The ticket of the failures; empty if there is none.
    pub ticket: String,
    /// The reason why the engine failed, if it did.
    pub engine_failure: Option<String>,
    /// The result of the instances that it lacks because it ended early. `NotExecuted` as long as they
    /// are expected.
    #[sqlx(try_from = "EnumColumn<TestResult>")]
    missing_result: i32,
    /// The status that the last review has set, as long as the result holds.
    pub judgement: Option<String>,
    /// Maximum duration of an instance, in minutes; 0 for the default. Only new reports have it.
    #[sqlx(skip)]
    pub maximum_duration_in_min: f64,
    /// Suites, labels and links of the test, if new results name any.
    #[sqlx(skip)]
    pub classification: Option<Arc<Classification>>,
    /// Whether the stored row differs.
    #[sqlx(skip)]
    pub changed: bool,
}

impl TestReportState {
    /// Creates the report of a test case that has just been requested.
    pub fn new(
        id: TestReportId,
        case: &SnapshotTestCase,
        execution_number: i32,
        instances: i32,
    ) -> Self {
        let mut published = ReportState {
            id: id.to_string(),
            test_case_id: case.id.clone(),
            test_plan_id: case.test_plan_id.clone(),
            execution_number,
            test_case_identifier: Some(case.identifier.clone()),
            is_muted: Some(false),
            revision: 1,
            ..ReportState::default()
        };
        published.set_result(TestResult::NotExecuted);
        published.set_status(ReportStatus::NotExecuted);
        published.set_change(ResultChange::None);
        Self {
            published,
            requested_instances_count: instances,
            missing_result: TestResult::NotExecuted.into(),
            ..Self::default()
        }
    }

    /// Returns the suites of a new classification, of which none contains a line break, on lines.
    pub fn suites(&self) -> Option<String> {
        self.classification.as_ref().map(|one| one.suites.join("\n"))
    }

    pub fn labels(&self) -> Option<Json<&[Label]>> {
        let labels = &self.classification.as_ref()?.labels;
        (!labels.is_empty()).then_some(Json(labels))
    }

    /// Sets where the test belongs, as new results name it, and so its owners.
    pub fn classify(&mut self, classification: Arc<Classification>) {
        self.published.owners = owners(&classification.labels);
        self.classification = Some(classification);
    }

    /// Returns the owners of the test, on lines.
    pub fn owners(&self) -> String {
        self.published.owners.join("\n")
    }

    pub fn links(&self) -> Option<Json<&[Link]>> {
        let links = &self.classification.as_ref()?.links;
        (!links.is_empty()).then_some(Json(links))
    }

    /// Returns the size of a new classification, in bytes.
    pub fn size_of_classification(&self) -> usize {
        self.classification.as_ref().map_or(0, |one| one.encoded_len())
    }

    pub fn test_case_identifier(&self) -> &str {
        self.published.test_case_identifier.as_deref().unwrap_or_default()
    }

    /// Whether all its failures were known when they were reported.
    pub fn is_muted(&self) -> bool {
        self.published.is_muted()
    }

    pub fn result(&self) -> TestResult {
        self.published.result()
    }

    /// Returns the result, if the report has ended.
    pub fn ended_result(&self) -> Option<TestResult> {
        (!self.is_pending()).then(|| self.result())
    }

    /// Whether the report still expects instances.
    pub fn is_pending(&self) -> bool {
        is_pending(self.published.status())
    }

    /// Returns the result of the instances that the report lacks because it ended early.
    /// `NotExecuted` as long as they are expected.
    pub fn missing_result(&self) -> TestResult {
        TestResult::try_from(self.missing_result).unwrap_or_default()
    }

    /// Sets the result and the status that follow from the worst result of the finished instances and
    /// from how many there are. The judgement of a reviewer holds as long as the result does. This alone
    /// decides them, while results arrive and when they are verified.
    pub fn conclude(&mut self, of_instances: TestResult) {
        let before = self.ended_result();
        let missing = self.missing_result();
        let result = worst(of_instances, missing);
        let is_complete = self.requested_instances_count > 0
            && self.finished_instances_count == self.requested_instances_count;
        let status = if (missing, result) == (TestResult::Canceled, TestResult::Canceled) {
            ReportStatus::Canceled
        } else if is_complete || missing != TestResult::NotExecuted {
            status_of_finished(result)
        } else if self.finished_instances_count > 0 {
            ReportStatus::Running
        } else {
            match self.published.status() {
                // An engine has leased it.
                ReportStatus::Running => ReportStatus::Running,
                _ => ReportStatus::NotExecuted,
            }
        };
        self.published.set_result(result);
        if before != Some(result) || is_pending(status) {
            self.judgement = None;
            self.published.set_status(status);
        }
    }

    /// Expects instances up to this number. A report that has ended is pending again.
    pub fn expect(&mut self, highest: i32) {
        if highest > self.requested_instances_count {
            self.change();
            self.requested_instances_count = highest;
            self.conclude(self.result());
        }
    }

    /// Applies the outcomes of all finished instances, after some of them have changed. A report
    /// that has ended awaits another review if its result differs.
    pub fn recount(&mut self, recount: &Recount) {
        self.change();
        self.apply(recount);
    }

    /// Sets what follows from all finished instances.
    pub fn apply(&mut self, recount: &Recount) {
        let published = &mut self.published;
        published.start_date_time = recount.start_date_time;
        published.finish_date_time = recount.finish_date_time;
        published.average_duration_in_sec =
            recount.total_duration_in_sec / f64::from(recount.finished_instances_count.max(1));
        self.finished_instances_count = recount.finished_instances_count;
        self.total_duration_in_sec = recount.total_duration_in_sec;
        self.is_flaky = recount.is_flaky;
        self.conclude(recount.result());
    }

    /// Adds a finished instance. The last one ends the report.
    pub fn add(&mut self, instance: &NewInstance) -> Result<(), Fault> {
        let outcome = &instance.last.outcome;
        if !self.is_pending() {
            let reason = format!("the report of {} has ended", self.test_case_identifier());
            return Err(Fault::Conflict { code: "report_ended", reason });
        }
        self.change();
        self.finished_instances_count += 1;
        self.total_duration_in_sec += outcome.duration_in_sec;
        self.is_flaky |= instance.is_flaky();
        let published = &mut self.published;
        published.average_duration_in_sec =
            self.total_duration_in_sec / f64::from(self.finished_instances_count);
        published.start_date_time = earliest(published.start_date_time, outcome.start_date_time);
        published.finish_date_time = published.finish_date_time.max(outcome.finish_date_time);
        self.conclude(worst(self.result(), outcome.result));
        Ok(())
    }

    /// Counts announced instances that have ended without being reported.
    pub fn end_announced(&mut self, instances: i32) {
        self.change();
        self.finished_instances_count += instances;
        self.published.average_duration_in_sec =
            self.total_duration_in_sec / f64::from(self.finished_instances_count);
    }

    /// Ends a pending report without its missing instances. A report whose worst result is
    /// `Canceled` needs no review.
    pub fn end(&mut self, ending: Ending<'_>) {
        self.change();
        if let Ending::EngineFailure(reason) = ending {
            self.engine_failure = Some(reason.to_owned());
        }
        self.missing_result = ending.result().into();
        self.conclude(self.result());
    }

    /// Returns the derived state of a report, to be stored with the next revision.
    #[must_use]
    pub fn repaired(mut self, stored: &Self) -> Self {
        self.published.revision = stored.published.revision;
        self.change();
        self
    }

    fn change(&mut self) {
        if !std::mem::replace(&mut self.changed, true) {
            self.published.revision += 1;
        }
    }
}
