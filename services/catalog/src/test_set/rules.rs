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
            subject: SubjectId::parse_if_any(Self::SUBJECT, subject)?,
            environment: EnvironmentId::parse_if_any(Self::ENVIRONMENT, environment)?,
        })
    }
}

/// The ids of the test cases that a client has named, in its order.
pub(super) fn cases(references: &[Reference]) -> Result<Vec<TestCaseId>, Fault> {
    let mut check = Check::default();
    let mut cases = Vec::with_capacity(references.len());
    for (place, reference) in references.iter().enumerate() {
        match TestCaseId::named(&reference.id) {
            Ok(id) => cases.push(id),
            Err(_) => refuse(&mut check, place),
        }
    }
    check.done().map(|()| cases)
}

/// Fails for those of the named test cases that are not among `known`.
pub(super) fn all_among(cases: &[TestCaseId], known: &HashSet<TestCaseId>) -> Result<(), Fault> {
    let mut check = Check::default();
    for (place, case) in cases.iter().enumerate() {
        if !known.contains(case) {
            refuse(&mut check, place);
        }
    }
    check.done()
}

fn refuse(check: &mut Check, place: usize) {
    check.refuse(format!("TestCases/{place}/Id"), "must be the id of a test case of the project");
}
