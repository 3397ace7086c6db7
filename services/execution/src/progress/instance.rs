//! Instances before they are stored.

use assay_fingerprint::Failure as Cause;
use assay_proto::{InstanceId, TestResult, Timestamp};

/// The result and the times of an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) result: TestResult,
    pub(crate) start_date_time: Option<Timestamp>,
    pub(crate) finish_date_time: Option<Timestamp>,
    pub(crate) duration_in_sec: f64,
}

/// The part of an attempt that only the page of its instance shows.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Detail {
    /// The steps in their stored form. Empty if there are none.
    pub(crate) steps: Vec<u8>,
    /// `None` if there are none, as in reports of test tools: a request has thousands of attempts.
    pub(crate) links: Option<Box<Links>>,
}

/// Links to what an engine has stored elsewhere. Each may be empty.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Links {
    pub(crate) artifacts: String,
    pub(crate) report: String,
    pub(crate) debug_log: String,
    pub(crate) execution_log: String,
    pub(crate) installation_log: String,
}

/// An attempt at an instance.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Attempt {
    /// Number of the attempt, from 1.
    pub(crate) number: i32,
    pub(crate) outcome: Outcome,
    pub(crate) detail: Detail,
    /// The cause, if the attempt failed and its steps state it.
    pub(crate) cause: Option<Box<Cause>>,
}

/// The identity of an instance within its report.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Slot {
    /// The number of the instance.
    Number(i32),
    /// The reporter and the parameters of the instance. Either may be empty.
    Named { reporter: String, variant: String },
}

impl Slot {
    /// The instance of a client that has no name, without parameters.
    pub(crate) const UNNAMED: Self =
        Self::Named { reporter: String::new(), variant: String::new() };

    pub(crate) fn number(&self) -> Option<i32> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Named { .. } => None,
        }
    }

    pub(crate) fn reporter(&self) -> &str {
        match self {
            Self::Number(_) => "",
            Self::Named { reporter, .. } => reporter,
        }
    }

    pub(crate) fn variant(&self) -> &str {
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
pub(crate) struct NewInstance {
    pub(crate) id: InstanceId,
    /// The index of its report among the reports that are changed.
    pub(crate) report: usize,
    pub(crate) instance_nr: i32,
    pub(crate) reporter: String,
    pub(crate) variant: String,
    /// The last attempt, whose outcome is that of the instance.
    pub(crate) last: Attempt,
    /// Earlier attempts.
    pub(crate) earlier: Vec<Attempt>,
}

impl NewInstance {
    /// Whether the instance passed after an attempt that did not. Tools also repeat tests that passed,
    /// such as those in front of a failed one in a serial group of Playwright. Attempts that were not
    /// reported have failed.
    pub(crate) fn is_flaky(&self) -> bool {
        let has_passed = |attempt: &Attempt| attempt.outcome.result == TestResult::Passed;
        let passed: i32 = self.earlier.iter().map(|one| i32::from(has_passed(one))).sum();
        has_passed(&self.last) && passed + 1 < self.last.number
    }
}
