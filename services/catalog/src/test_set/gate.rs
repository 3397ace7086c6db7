//! The rules of a set for the verdict of its executions.

use std::collections::HashSet;

use assay_proto::{
    Fault,
    catalog::{Gate, GateInput},
};
use assay_records::Check;

/// Name of the field of a set.
pub(super) const FIELD: &str = "Gate";

/// Maximum number of test cases that have to have been executed.
const MOST_REQUIRED: usize = 1000;

/// Fills in the defaults of rules that are absent.
pub(super) fn with_defaults(gate: GateInput) -> GateInput {
    GateInput {
        max_new_failures: gate.max_new_failures.or(Some(0)),
        allow_known_failures: gate.allow_known_failures.or(Some(true)),
        ..gate
    }
}

/// Returns rules as a set would have them: checked, and with their defaults.
pub(crate) fn resolved(gate: GateInput) -> Result<Gate, Fault> {
    let gate = with_defaults(gate);
    let mut all = Check::default();
    all.within(FIELD, |rules| check(rules, &gate));
    all.done()?;
    // The columns of sets are written and read in the same way.
    let json = serde_json::to_value(gate).map_err(Fault::internal)?;
    serde_json::from_value(json).map_err(Fault::internal)
}

pub(super) fn check(check: &mut Check, gate: &GateInput) {
    if let Some(most) = gate.max_new_failures {
        check.at_least("MaxNewFailures", most, 0);
    }
    if let Some(most) = gate.max_flaky_tests {
        check.at_least("MaxFlakyTests", most, 0);
    }
    if let Some(least) = gate.min_pass_rate {
        check.range("MinPassRate", least, 0.0..=100.0);
    }
    for (field, value, bounds) in [
        ("FlakyAfterBreaks", gate.flaky_after_breaks, 2..=25),
        ("LongestFlakyBreak", gate.longest_flaky_break, 1..=10),
        ("FlakyWithinRuns", gate.flaky_within_runs, 5..=50),
    ] {
        if let Some(value) = value {
            check.range(field, value, bounds);
        }
    }
    check.within("RequiredTestCases", |check| required(check, &gate.required_test_cases));
}

fn required(check: &mut Check, identifiers: &[String]) {
    if identifiers.len() > MOST_REQUIRED {
        check.refuse("", format!("must have at most {MOST_REQUIRED} identifiers"));
        return;
    }
    let mut seen = HashSet::new();
    for (index, identifier) in identifiers.iter().enumerate() {
        check.name(&index.to_string(), identifier);
        if !seen.insert(identifier) {
            check.refuse(index.to_string(), "is listed already; name each test case once");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of rules that are not valid.
    fn wrong(gate: GateInput) -> Vec<String> {
        let mut all = Check::default();
        all.within(FIELD, |rules| check(rules, &with_defaults(gate)));
        match all.done() {
            Err(Fault::Invalid(violations)) => violations.into_iter().map(|it| it.field).collect(),
            Err(fault) => panic!("{fault}"),
            Ok(()) => Vec::new(),
        }
    }

    fn identifiers(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("case-{number}")).collect()
    }

    #[test]
    fn rules_are_checked_with_their_path() {
        let none = GateInput::default;
        let required = |cases: &[&str]| GateInput {
            required_test_cases: cases.iter().map(|case| (*case).to_owned()).collect(),
            ..none()
        };
        let long = "x".repeat(256);
        for (gate, fields) in [
            (none(), &[][..]),
            (GateInput { max_new_failures: Some(-1), ..none() }, &["Gate/MaxNewFailures"]),
            (GateInput { max_flaky_tests: Some(-1), ..none() }, &["Gate/MaxFlakyTests"]),
            (GateInput { max_flaky_tests: Some(0), ..none() }, &[]),
            (GateInput { min_pass_rate: Some(-0.1), ..none() }, &["Gate/MinPassRate"]),
            (GateInput { min_pass_rate: Some(100.1), ..none() }, &["Gate/MinPassRate"]),
            (GateInput { min_pass_rate: Some(f64::NAN), ..none() }, &["Gate/MinPassRate"]),
            (GateInput { min_pass_rate: Some(100.0), ..none() }, &[]),
            // One break must not make a test flaky, since its next failure may be a regression.
            (GateInput { flaky_after_breaks: Some(1), ..none() }, &["Gate/FlakyAfterBreaks"]),
            (GateInput { longest_flaky_break: Some(0), ..none() }, &["Gate/LongestFlakyBreak"]),
            (GateInput { flaky_within_runs: Some(51), ..none() }, &["Gate/FlakyWithinRuns"]),
            (
                GateInput {
                    flaky_after_breaks: Some(25),
                    longest_flaky_break: Some(10),
                    flaky_within_runs: Some(5),
                    ..none()
                },
                &[],
            ),
            (required(&["a", "b", "A"]), &[]),
            (required(&["a", " ", "a"]), &["Gate/RequiredTestCases/1", "Gate/RequiredTestCases/2"]),
            (required(&[&long]), &["Gate/RequiredTestCases/0"]),
            (GateInput { required_test_cases: identifiers(1000), ..none() }, &[]),
            (
                GateInput { required_test_cases: identifiers(1001), ..none() },
                &["Gate/RequiredTestCases"],
            ),
        ] {
            assert_eq!(wrong(gate.clone()), fields, "{gate:?}");
        }
    }
}
