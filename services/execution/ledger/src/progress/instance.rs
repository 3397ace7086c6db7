//! Instances before they are stored.

use assay_fingerprint::Failure as Cause;
use assay_proto::{InstanceId, TestResult, Timestamp};

/// The result and the times of an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    pub result: TestResult,
    pub start_date_time: Option<Timestamp>,
    pub finish_date_time: Option<Timestamp>,
    pub duration_in_sec: f64,
}

/// The part of an attempt that only the page of its instance shows.
#[derive(Debug, Default, PartialEq)]
pub struct Detail {
    /// The steps in their stored form. Empty if there are none.
    pub steps: Vec<u8>,
    /// `None` if there are none, as in reports of test tools: a request has thousands of attempts.
    pub links: Option<Box<Links>>,
}

/// Links to what an engine has stored elsewhere. Each may be empty.
#[derive(Debug, Default, PartialEq)]
pub struct Links {
    pub artifacts: String,
    pub report: String,
    pub debug_log: String,
    pub execution_log: String,
    pub installation_log: String,
}

/// An attempt at an instance.
#[derive(Debug, Default, PartialEq)]
pub struct Attempt {
    /// Number of the attempt, from 1.
    pub number: i32,
    pub outcome: Outcome,
    pub detail: Detail,
    /// The cause, if the attempt failed and its steps state it.
    pub cause: Option<Box<Cause>>,
}

/// The identity of an instance within its report.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// The number of the instance.
    Number(i32),
    /// The reporter and the parameters of the instance. Either may be empty.
    Named { reporter: String, variant: String },
}

impl Slot {
    /// The instance of a client that has no name, without parameters.
    pub const UNNAMED: Self = Self::Named { reporter: String::new(), variant: String::new() };

    pub fn number(&self) -> Option<i32> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Named { .. } => None,
        }
    }

    pub fn reporter(&self) -> &str {
        match self {
            Self::Number(_) => "",
            Self::Named { reporter, .. } => reporter,
        }
    }

    pub fn variant(&self) -> &str {
        match self {
            Self::Number(_) => "",
            Self::Named { variant, .. } => variant,
        }
    }
}

impl Default for Slot {
    fn default() -> Self {
        Self::UNNAMED
    }
}

/// An instance to store.
#[derive(Debug, PartialEq)]
pub struct NewInstance {
    pub id: InstanceId,
    /// The index of its report among the reports that are changed.
    pub report: usize,
    pub instance_nr: i32,
    pub reporter: String,
    pub variant: String,
    /// The last attempt, whose outcome is that of the instance.
    pub last: Attempt,
    /// Earlier attempts.
    pub earlier: Vec<Attempt>,
}

impl NewInstance {
    /// Whether the instance passed after an attempt that did not. Tools also repeat tests that passed,
    /// such as those in front of a failed one in a serial group of Playwright. Attempts that were not
    /// reported have failed.
    pub fn is_flaky(&self) -> bool {
        let has_passed = |attempt: &Attempt| attempt.outcome.result == TestResult::Passed;
        let passed: i32 = self.earlier.iter().map(|one| i32::from(has_passed(one))).sum();
        has_passed(&self.last) && passed + 1 < self.last.number
    }
}
