//! The rules of projects for the causes of their failures: text that does not count, and causes that are
//! one although their texts differ.
//!
//! The fingerprint of a failure is a function of its text and of the rules of its project. Results that
//! arrive use the rules of that moment. When rules change, [`derivation`](crate::failure::derivation) derives the stored failures again,
//! the latest executions first, and moves known failures along. `verify` compares failures with the rules
//! once this is done.

pub mod event;
pub mod store;

use std::collections::HashMap;

use assay_fingerprint::{Failure, Fingerprint, InvalidPattern, Noise};
use assay_proto::{Fault, TestResult};
use uuid::Uuid;

use crate::instance::steps::StoredStep;

/// The rules of a project, ready to be applied.
#[derive(Clone, Debug, Default)]
pub struct CauseRules {
    noise: Noise,
    same: HashMap<Fingerprint, Fingerprint>,
}

impl CauseRules {
    /// Compiles patterns, and takes pairs of a fingerprint and the one that replaces it.
    pub fn new(
        patterns: &[String],
        same: impl IntoIterator<Item = (Fingerprint, Fingerprint)>,
    ) -> Result<Self, Fault> {
        let noise = Noise::new(patterns.iter().map(String::as_str)).map_err(Fault::internal)?;
        Ok(Self { noise, same: same.into_iter().collect() })
    }

    /// Adds a pattern of text that does not count.
    pub fn add_pattern(&mut self, pattern: &str) -> Result<(), InvalidPattern> {
        self.noise.add(pattern)
    }

    /// Adds a cause that counts as another one.
    pub fn add_same(&mut self, one: Fingerprint, other: Fingerprint) {
        self.same.insert(one, other);
    }

    /// Whether the text of a failure is needed, and not only the fingerprint that has no rules.
    pub fn has_patterns(&self) -> bool {
        !self.noise.is_empty()
    }

    /// Returns the cause of the failure of an attempt: the message of its first failed step that has one.
    pub fn of_steps(&self, result: TestResult, steps: &[StoredStep]) -> Option<Failure> {
        let mut failed = steps.iter().filter(|step| step.result().is_failure());
        if !result.is_failure() {
            return None;
        }
        failed.find_map(|step| Failure::with_noise(&step.actual_result, &self.noise))
    }

    /// Returns the cause that a reason states.
    pub fn of_reason(&self, reason: &str) -> Option<Failure> {
        Failure::with_noise(reason, &self.noise)
    }

    /// Returns the fingerprint and the headline that a failure of a test case is stored with. Without a
    /// message, the fingerprint is the id of the test case, so that the failure has a cause of its own.
    pub fn identity(&self, cause: Option<&Failure>, test_case: Uuid) -> (Vec<u8>, String) {
        let own = Fingerprint::from(test_case.into_bytes());
        let fingerprint = self.root(cause.map_or(own, |cause| cause.fingerprint));
        let headline = cause.map_or_else(String::new, |cause| cause.headline.clone());
        (fingerprint.as_bytes().to_vec(), headline)
    }

    /// Returns the cause that a cause counts as. A rule that would make a circle is refused.
    pub fn root(&self, mut fingerprint: Fingerprint) -> Fingerprint {
        for _ in 0..=self.same.len() {
            match self.same.get(&fingerprint) {
                Some(same) => fingerprint = *same,
                None => break,
            }
        }
        fingerprint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_counts_as_the_last_one_of_a_chain() {
        let [one, two, three, other] = [1, 2, 3, 4].map(|byte| Fingerprint::from([byte; 16]));
        let rules = CauseRules::new(&[], [(one, two), (two, three)]).unwrap();
        assert_eq!(
            [one, two, three, other].map(|one| rules.root(one)),
            [three, three, three, other]
        );
        let (fingerprint, headline) = rules.identity(None, Uuid::from_bytes([1; 16]));
        assert_eq!((fingerprint, headline.as_str()), (vec![3; 16], ""));
    }
}
