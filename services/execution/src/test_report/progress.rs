//! How far a test report has come.

use assay_proto::{
    Fault, ReportStatus, TestReportId, TestResult, catalog::SnapshotTestCase, events::ReportState,
    worst,
};

use crate::{
    execution::{earliest, rules::status_of_finished},
    instance::Outcome,
};

/// How a report ends whose instances are not all there: what happened to those that are missing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ending {
    /// They were not reported in time, or not at all.
    Aborted,
    /// They were not to be run any more.
    Canceled,
    /// Their engine failed, or was not heard of again.
    EngineFailure,
}

impl Ending {
    fn result(self) -> TestResult {
        match self {
            Self::Aborted => TestResult::Aborted,
            Self::Canceled => TestResult::Canceled,
            Self::EngineFailure => TestResult::Error,
        }
    }
}

/// What results change of a report, and what they need to know of it.
#[derive(Debug, Default, sqlx::FromRow)]
pub(crate) struct Progress {
    #[sqlx(flatten)]
    pub(crate) state: ReportState,
    pub(crate) test_case_identifier: String,
    pub(crate) requested_instances_count: i32,
    pub(crate) finished_instances_count: i32,
    pub(crate) total_duration_in_sec: f64,
    /// Whether it is to be written down.
    #[sqlx(skip)]
    pub(crate) changed: bool,
}

impl Progress {
    /// A report that has just been requested.
    pub(crate) fn new(case: &SnapshotTestCase, execution_number: i32, instances: i32) -> Self {
        let mut state = ReportState {
            id: TestReportId::new().to_string(),
            test_case_id: case.id.clone(),
            test_plan_id: case.test_plan_id.clone(),
            execution_number,
            revision: 1,
            ..ReportState::default()
        };
        state.set_result(TestResult::NotExecuted);
        state.set_status(ReportStatus::NotExecuted);
        Self {
            state,
            test_case_identifier: case.identifier.clone(),
            requested_instances_count: instances,
            ..Self::default()
        }
    }

    pub(crate) fn result(&self) -> TestResult {
        self.state.result()
    }

    /// Whether instances are still to come.
    pub(crate) fn is_pending(&self) -> bool {
        matches!(self.state.status(), ReportStatus::NotExecuted | ReportStatus::Running)
    }

    /// Takes note of an instance that has finished; with the last one, the report ends.
    pub(crate) fn add(&mut self, outcome: &Outcome) -> Result<(), Fault> {
        if !self.is_pending() {
            let reason = format!("the report of {} has ended", self.test_case_identifier);
            return Err(Fault::Conflict { code: "report_ended", reason });
        }
        self.change();
        self.finished_instances_count += 1;
        self.total_duration_in_sec += outcome.duration_in_sec;
        let state = &mut self.state;
        state.average_duration_in_sec =
            self.total_duration_in_sec / f64::from(self.finished_instances_count);
        state.set_result(worst(state.result(), outcome.result));
        state.start_date_time = earliest(state.start_date_time, outcome.start_date_time);
        state.finish_date_time = state.finish_date_time.max(outcome.finish_date_time);
        state.set_status(if self.finished_instances_count == self.requested_instances_count {
            status_of_finished(state.result())
        } else {
            ReportStatus::Running
        });
        Ok(())
    }

    /// Ends a pending report without its missing instances. What was canceled and is nothing worse
    /// needs no review.
    pub(crate) fn end(&mut self, ending: Ending) {
        self.change();
        let result = worst(self.state.result(), ending.result());
        self.state.set_result(result);
        self.state.set_status(match result {
            TestResult::Canceled if ending == Ending::Canceled => ReportStatus::Canceled,
            _ => status_of_finished(result),
        });
    }

    fn change(&mut self) {
        if !std::mem::replace(&mut self.changed, true) {
            self.state.revision += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(instances: i32) -> Progress {
        Progress::new(&SnapshotTestCase::default(), 1, instances)
    }

    fn outcome(result: TestResult, duration_in_sec: f64) -> Outcome {
        Outcome { instance_nr: 1, result, duration_in_sec, ..Outcome::default() }
    }

    #[test]
    fn a_report_runs_until_its_last_instance_is_there() {
        let mut report = report(2);
        assert_eq!(report.state.status(), ReportStatus::NotExecuted);
        report.add(&outcome(TestResult::Failed, 1.0)).unwrap();
        assert_eq!(report.state.status(), ReportStatus::Running);
        report.add(&outcome(TestResult::Passed, 2.0)).unwrap();
        assert_eq!(report.state.status(), ReportStatus::InReview);
        assert_eq!(report.result(), TestResult::Failed);
        assert!((report.state.average_duration_in_sec - 1.5).abs() < f64::EPSILON);
    }

    #[test]
    fn an_error_makes_it_a_failure_of_the_engine() {
        let mut report = report(1);
        report.add(&outcome(TestResult::Error, 0.0)).unwrap();
        assert_eq!(report.state.status(), ReportStatus::EngineExecutionFailure);
    }

    #[test]
    fn what_is_missing_makes_a_report_no_better() {
        use TestResult::{Aborted, Canceled, Error, Failed, NotExecuted, Passed};
        for (so_far, ending, result, status) in [
            (NotExecuted, Ending::Aborted, Aborted, ReportStatus::InReview),
            (Passed, Ending::Aborted, Aborted, ReportStatus::InReview),
            (Failed, Ending::Aborted, Failed, ReportStatus::InReview),
            (Error, Ending::Aborted, Error, ReportStatus::EngineExecutionFailure),
            (NotExecuted, Ending::Canceled, Canceled, ReportStatus::Canceled),
            (Passed, Ending::Canceled, Canceled, ReportStatus::Canceled),
            (Failed, Ending::Canceled, Failed, ReportStatus::InReview),
            (Passed, Ending::EngineFailure, Error, ReportStatus::EngineExecutionFailure),
        ] {
            let mut report = report(2);
            if so_far != NotExecuted {
                report.add(&outcome(so_far, 0.0)).unwrap();
            }
            report.end(ending);
            assert_eq!((report.result(), report.state.status()), (result, status), "{so_far:?}");
            assert_eq!(report.state.revision, 2);
        }
    }

    #[test]
    fn a_report_that_has_ended_takes_no_more() {
        let mut report = report(1);
        report.add(&outcome(TestResult::Passed, 0.0)).unwrap();
        assert!(matches!(
            report.add(&outcome(TestResult::Passed, 0.0)),
            Err(Fault::Conflict { code: "report_ended", .. })
        ));
    }
}
