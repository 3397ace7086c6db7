//! What makes a test set.

use std::collections::HashSet;

use assay_proto::{
    EnvironmentId, Fault, Reference, SubjectId, TestCaseId,
    catalog::{TestSet, TestSetInput},
};
use assay_records::Check;

pub(super) fn valid(input: TestSetInput) -> Result<TestSetInput, Fault> {
    let mut check = Check::default();
    check.texts(&input);
    check.name("Name", &input.name);
    check.amount("TimeOut", input.time_out);
    check.done().map(|()| input)
}

/// What a set is to be executed with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Selected {
    pub(super) subject: Option<SubjectId>,
    pub(super) environment: Option<EnvironmentId>,
}

impl Selected {
    pub(super) const SUBJECT: &str = "SelectedSubjectId";
    pub(super) const ENVIRONMENT: &str = "SelectedEnvironmentId";

    /// What a client selects.
    pub(super) fn by(input: &TestSetInput) -> Result<Self, Fault> {
        Self::read(input.selected_subject_id.as_deref(), input.selected_environment_id.as_deref())
    }

    /// What is selected.
    pub(super) fn of(set: &TestSet) -> Result<Self, Fault> {
        Self::read(set.selected_subject_id.as_deref(), set.selected_environment_id.as_deref())
    }

    fn read(subject: Option<&str>, environment: Option<&str>) -> Result<Self, Fault> {
        Ok(Self {
            subject: SubjectId::from_field_if_any(Self::SUBJECT, subject)?,
            environment: EnvironmentId::from_field_if_any(Self::ENVIRONMENT, environment)?,
        })
    }
}

/// How many test cases one request may name.
const MOST_CASES: usize = 100_000;

/// Test cases that a client has named, in its order.
#[derive(Debug)]
pub(super) struct Named {
    /// Where they are in the body: a JSON pointer that ends with a slash, or none.
    place: &'static str,
    pub(super) ids: Vec<TestCaseId>,
}

/// The test cases of a set, as they are written.
pub(super) fn members(references: &[Reference]) -> Result<Named, Fault> {
    named("TestCases/", references)
}

/// The test cases that are to be included or excluded: the whole body.
pub(super) fn listed(references: &[Reference]) -> Result<Named, Fault> {
    named("", references)
}

fn named(place: &'static str, references: &[Reference]) -> Result<Named, Fault> {
    if references.len() > MOST_CASES {
        let field = place.trim_end_matches('/');
        return Err(Fault::invalid(field, format!("must be at most {MOST_CASES} test cases")));
    }
    let mut check = Check::default();
    let mut ids = Vec::with_capacity(references.len());
    for (index, reference) in references.iter().enumerate() {
        match TestCaseId::from_path(&reference.id) {
            Ok(id) => ids.push(id),
            Err(_) => refuse(&mut check, place, index),
        }
    }
    check.done().map(|()| Named { place, ids })
}

/// Fails for those of the named test cases that are not among `known`.
pub(super) fn all_among(cases: &Named, known: &HashSet<TestCaseId>) -> Result<(), Fault> {
    let mut check = Check::default();
    for (index, case) in cases.ids.iter().enumerate() {
        if !known.contains(case) {
            refuse(&mut check, cases.place, index);
        }
    }
    check.done()
}

fn refuse(check: &mut Check, place: &str, index: usize) {
    check.refuse(format!("{place}{index}/Id"), "must be the id of a test case of the project");
}
