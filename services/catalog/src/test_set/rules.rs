//! The rules for test sets.

use std::collections::HashSet;

use assay_proto::{
    EnvironmentId, Fault, Reference, SubjectId, TestCaseId,
    catalog::{TestSet, TestSetInput},
    nearest,
};
use assay_records::Check;

use super::gate;

/// Maximum number of test cases in a request.
const MOST_CASES: usize = 100_000;

/// Returns a new test set with its defaults, which is active.
pub(super) fn new(input: TestSetInput) -> TestSetInput {
    TestSetInput { archived: false, gate: Some(input.gate.unwrap_or_default()), ..input }
}

pub(super) fn valid(mut input: TestSetInput) -> Result<TestSetInput, Fault> {
    input.gate = input.gate.map(gate::with_defaults);
    let mut check = Check::default();
    check.texts(&input);
    check.name("Name", &input.name);
    check.amount("TimeOut", input.time_out);
    match &input.gate {
        Some(rules) => check.within(gate::FIELD, |check| gate::check(check, rules)),
        None => check.refuse(gate::FIELD, "must not be null; {} restores the defaults"),
    }
    if let Some(priority) = &input.priority {
        check_priority(&mut check, priority);
    }
    check.done().map(|()| input)
}

/// Words for the priority of a set, highest first. Other texts rank like `Normal`.
const PRIORITIES: [&str; 5] = ["Highest", "High", "Normal", "Low", "Lowest"];

/// Refuses a text that looks like a misspelt priority, which would silently rank like `Normal`.
fn check_priority(check: &mut Check, priority: &str) {
    let priority = priority.trim();
    let is_known = PRIORITIES.iter().any(|known| known.eq_ignore_ascii_case(priority));
    if !is_known && let Some(meant) = nearest(priority, PRIORITIES.into_iter()) {
        let known = PRIORITIES.join("`, `");
        check.refuse("Priority", format!("must be one of `{known}`; did you mean `{meant}`?"));
    }
}

/// The subject and the environment that are selected for the next execution of a set.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Selected {
    pub(super) subject: Option<SubjectId>,
    pub(super) environment: Option<EnvironmentId>,
}

impl Selected {
    pub(super) const SUBJECT: &str = "SelectedSubjectId";
    pub(super) const ENVIRONMENT: &str = "SelectedEnvironmentId";

    /// Parses the selection in a request.
    pub(super) fn by(input: &TestSetInput) -> Result<Self, Fault> {
        Self::parse(input.selected_subject_id.as_deref(), input.selected_environment_id.as_deref())
    }

    /// Returns the selection of a stored set.
    pub(super) fn of(set: &TestSet) -> Result<Self, Fault> {
        Self::parse(set.selected_subject_id.as_deref(), set.selected_environment_id.as_deref())
    }

    fn parse(subject: Option<&str>, environment: Option<&str>) -> Result<Self, Fault> {
        Ok(Self {
            subject: SubjectId::from_field_if_any(Self::SUBJECT, subject)?,
            environment: EnvironmentId::from_field_if_any(Self::ENVIRONMENT, environment)?,
        })
    }
}

/// The test cases that a request refers to, in its order.
#[derive(Debug)]
pub(super) struct References {
    /// JSON pointer to the list in the body, with a slash at its end; empty for the whole body.
    pointer: &'static str,
    pub(super) ids: Vec<TestCaseId>,
}

/// Parses the test cases in the field of a set.
pub(super) fn members(references: &[Reference]) -> Result<References, Fault> {
    parse("TestCases/", references)
}

/// Parses the test cases in a body that lists nothing else.
pub(super) fn listed(references: &[Reference]) -> Result<References, Fault> {
    parse("", references)
}

fn parse(pointer: &'static str, references: &[Reference]) -> Result<References, Fault> {
    if references.len() > MOST_CASES {
        let field = pointer.trim_end_matches('/');
        return Err(Fault::invalid(field, format!("must be at most {MOST_CASES} test cases")));
    }
    let mut check = Check::default();
    let mut ids = Vec::with_capacity(references.len());
    for (index, reference) in references.iter().enumerate() {
        match TestCaseId::from_path(&reference.id) {
            Ok(id) => ids.push(id),
            Err(_) => refuse(&mut check, pointer, index),
        }
    }
    check.done().map(|()| References { pointer, ids })
}

/// Fails for the test cases that are not in `existing`.
pub(super) fn all_exist(cases: &References, existing: &HashSet<TestCaseId>) -> Result<(), Fault> {
    let mut check = Check::default();
    for (index, case) in cases.ids.iter().enumerate() {
        if !existing.contains(case) {
            refuse(&mut check, cases.pointer, index);
        }
    }
    check.done()
}

fn refuse(check: &mut Check, pointer: &str, index: usize) {
    check.refuse(format!("{pointer}{index}/Id"), "no such test case in this project");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_priority_is_refused_and_others_are_kept() {
        for (priority, is_accepted) in [
            ("Highest", true),
            (" lowest ", true),
            ("Urgent", true),
            ("1", true),
            ("", true),
            ("hihgest", false),
            ("Hgih", false),
        ] {
            let mut check = Check::default();
            check_priority(&mut check, priority);
            assert_eq!(check.is_ok(), is_accepted, "{priority}");
        }
    }
}
