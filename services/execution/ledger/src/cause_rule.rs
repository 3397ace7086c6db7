//! The rules of projects for the causes of their failures: text that does not count, and causes that are
//! one although their texts differ.
//!
//! The fingerprint of a failure is a function of its text and of the rules of its project. Results that
//! arrive use the rules of that moment. When rules change, [`derivation`](crate::failure::derivation) derives the
//! stored failures again, the latest executions first, and moves known failures along. `verify` compares
//! failures with the rules once this is done.
//!
//! A pattern changes the fingerprints of causes that other rules join. So a rule keeps the lines of both of its
//! causes, and their fingerprints follow from the lines and the patterns of the moment.

pub mod store;

use std::collections::HashMap;

use assay_fingerprint::{Failure, Fingerprint, Noise};
use assay_proto::{Fault, TestResult};
use uuid::Uuid;

use crate::instance::steps::StoredStep;

/// A rule of a project.
#[derive(Clone, Debug)]
pub enum Rule {
    /// Text that a pattern matches does not count.
    Noise(String),
    /// Failures with the first cause have the second one.
    Same(Cause, Cause),
}

/// A cause that a rule joins with another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Its fingerprint when the rule was created.
    pub fingerprint: Fingerprint,
    /// The lines that state it. A cause without lines is that of a test case without a message.
    pub lines: Vec<String>,
}

impl Cause {
    fn fingerprint_by(&self, noise: &Noise) -> Fingerprint {
        let failure = Failure::of_lines(&self.lines, noise);
        failure.map_or(self.fingerprint, |failure| failure.fingerprint)
    }

    /// Returns the message in a few lines.
    pub fn headline(&self) -> String {
        let failure = Failure::of_lines(&self.lines, &Noise::default());
        failure.map(|failure| failure.headline).unwrap_or_default()
    }
}

/// The rules of a project, ready to be applied.
#[derive(Clone, Debug, Default)]
pub struct CauseRules {
    noise: Noise,
    same: HashMap<Fingerprint, Fingerprint>,
}

impl CauseRules {
    /// Compiles rules, in the order of their creation. A rule for causes that are one already, because patterns have
    /// changed since, has no effect. A rule for a cause that counts as another one joins that one, so what rules have
    /// joined stays joined, and no cause counts as itself.
    pub fn new(rules: &[Rule]) -> Result<Self, Fault> {
        let patterns = rules.iter().filter_map(|rule| match rule {
            Rule::Noise(pattern) => Some(pattern.as_str()),
            Rule::Same(..) => None,
        });
        let noise = Noise::new(patterns).map_err(Fault::internal)?;
        let mut compiled = Self { noise, same: HashMap::new() };
        for rule in rules {
            let Rule::Same(one, other) = rule else { continue };
            let [one, other] = [one, other].map(|cause| compiled.root(compiled.of(cause)));
            if one != other {
                compiled.same.insert(one, other);
            }
        }
        Ok(compiled)
    }

    /// Returns the fingerprint of a cause of a rule by the patterns of now.
    pub fn of(&self, cause: &Cause) -> Fingerprint {
        cause.fingerprint_by(&self.noise)
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

    /// Returns the fingerprint of lines of a test case, whatever it counts as.
    pub fn own(&self, lines: &[String], test_case: Uuid) -> Fingerprint {
        let failure = Failure::of_lines(lines, &self.noise);
        failure.map_or(test_case.into_bytes().into(), |failure| failure.fingerprint)
    }

    /// Returns the fingerprint and the headline that a failure of a test case is stored with. Without a
    /// message, the fingerprint is the id of the test case, so that the failure has a cause of its own.
    pub fn identity(&self, cause: Option<&Failure>, test_case: Uuid) -> (Vec<u8>, String) {
        let own = Fingerprint::from(test_case.into_bytes());
        let fingerprint = self.root(cause.map_or(own, |cause| cause.fingerprint));
        let headline = cause.map_or_else(String::new, |cause| cause.headline.clone());
        (fingerprint.as_bytes().to_vec(), headline)
    }

    /// Returns the cause that a cause counts as.
    pub fn root(&self, mut fingerprint: Fingerprint) -> Fingerprint {
        while let Some(same) = self.same.get(&fingerprint) {
            fingerprint = *same;
        }
        fingerprint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(line: &str) -> Cause {
        let fingerprint = Failure::of(line).unwrap().fingerprint;
        Cause { fingerprint, lines: vec![line.to_owned()] }
    }

    fn same(one: &str, other: &str) -> Rule {
        Rule::Same(cause(one), cause(other))
    }

    fn of(rules: &[Rule], text: &str) -> Fingerprint {
        let rules = CauseRules::new(rules).unwrap();
        rules.root(rules.of_reason(text).unwrap().fingerprint)
    }

    #[test]
    fn a_cause_counts_as_the_last_one_of_a_chain() {
        let rules = [same("no bank", "bank is closed"), same("bank is closed", "no money")];
        for text in ["no bank", "bank is closed", "no money"] {
            assert_eq!(of(&rules, text), cause("no money").fingerprint, "{text}");
        }
        assert_eq!(of(&rules, "no printer"), cause("no printer").fingerprint);
    }

    #[test]
    fn joined_causes_stay_joined_when_patterns_change() {
        let joined = same("no bank for Smith", "bank of Smith is closed");
        let rules = [joined, Rule::Noise(r"Smith|Jones".to_owned())];
        let texts = ["no bank for Smith", "no bank for Jones", "bank of Jones is closed"];
        let [one, other, third] = texts.map(|text| of(&rules, text));
        assert_eq!((one, other), (other, third));
    }

    #[test]
    fn causes_of_any_rules_are_joined_when_patterns_make_causes_equal() {
        let lines = ["no bank for Smith", "no bank for Jones", "bank is closed", "no money"];
        let pairs = || lines.into_iter().flat_map(|one| lines.map(|other| (one, other)));
        let pairs: Vec<_> = pairs().filter(|(one, other)| one != other).collect();
        let mut seen = 0;
        for first in &pairs {
            for second in pairs.iter().filter(|second| second.0 != first.0) {
                for third in pairs.iter().filter(|third| ![first.0, second.0].contains(&third.0)) {
                    let joined = [first, second, third];
                    let mut rules = joined.map(|(one, other)| same(one, other)).to_vec();
                    rules.push(Rule::Noise(r"Smith|Jones".to_owned()));
                    let rules = CauseRules::new(&rules).unwrap();
                    for (one, other) in joined {
                        let root = |line| rules.root(rules.of(&cause(line)));
                        assert_eq!(root(one), root(other), "{joined:?}");
                    }
                    seen += 1;
                }
            }
        }
        assert_eq!(seen, 648);
    }
}
