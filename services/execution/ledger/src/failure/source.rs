//! The sources from which failures are derived.

use assay_fingerprint::lines;
use assay_proto::{EnumColumn, Fault, TestResult};
use sqlx::FromRow;
use uuid::Uuid;

use crate::{
    cause_rule::{Cause, CauseRules},
    instance::steps::{self, StoredStep},
};

/// A failed instance with its steps, or the failure of an engine with its reason.
#[derive(FromRow)]
pub(super) struct Source {
    test_case_id: Uuid,
    #[sqlx(try_from = "EnumColumn<TestResult>")]
    result: i32,
    steps: Vec<u8>,
    reason: Option<String>,
}

impl Source {
    /// Returns the fingerprint and the headline that follow by the rules of the project.
    pub(super) fn identity(&self, rules: &CauseRules) -> Result<(Vec<u8>, String), Fault> {
        let cause = if let Some(reason) = &self.reason {
            rules.of_reason(reason)
        } else {
            let steps: Vec<StoredStep> = steps::read(&self.steps)?;
            rules.of_steps(TestResult::try_from(self.result).unwrap_or_default(), &steps)
        };
        Ok(rules.identity(cause.as_ref(), self.test_case_id))
    }

    /// Returns the cause, whatever it counts as, with the lines that state it.
    pub(super) fn cause(&self, rules: &CauseRules) -> Result<Cause, Fault> {
        let lines = if let Some(reason) = &self.reason {
            lines(reason)
        } else {
            let steps: Vec<StoredStep> = steps::read(&self.steps)?;
            let failed = steps.iter().filter(|step| step.result().is_failure());
            let mut stated = failed.map(|step| lines(&step.actual_result));
            stated.find(|lines| !lines.is_empty()).unwrap_or_default()
        };
        Ok(Cause { fingerprint: rules.own(&lines, self.test_case_id), lines })
    }
}
