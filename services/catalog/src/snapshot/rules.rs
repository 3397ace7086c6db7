//! What can be executed, and what test tools may report.

use std::collections::HashSet;

use assay_proto::{
    Fault, TestCaseId,
    catalog::{ReportedTestCase, SnapshotTestCase},
};
use assay_records::{Check, MOST_PROBLEMS, below};

pub(super) const SUBJECT: &str = "SubjectId";
pub(super) const ENVIRONMENT: &str = "EnvironmentId";

/// The most test cases of one report of a test tool.
const MOST_CASES: usize = 100_000;

pub(super) fn not_too_many(cases: usize) -> Result<(), Fault> {
    if cases <= MOST_CASES {
        return Ok(());
    }
    Err(Fault::invalid("TestCases", format!("must be at most {MOST_CASES}")))
}

/// The test cases that a test tool has named, each once.
pub(super) fn reported(cases: Vec<ReportedTestCase>) -> Result<Vec<ReportedTestCase>, Fault> {
    if cases.is_empty() {
        return Err(Fault::invalid("TestCases", "must name at least one test case"));
    }
    let mut check = Check::default();
    for (place, case) in cases.iter().enumerate() {
        for (field, text) in [("Identifier", &case.identifier), ("Name", &case.name)] {
            let field = format!("TestCases/{place}/{field}");
            check.name(&field, text);
            check.text(&field, text);
        }
    }
    check.done()?;
    let mut seen = HashSet::new();
    Ok(cases.into_iter().filter(|case| seen.insert(case.identifier.clone())).collect())
}

/// The cases that are not among those that can be executed, as many as are told of at once.
pub(super) fn missing(asked: &[TestCaseId], ready: &[SnapshotTestCase]) -> Vec<TestCaseId> {
    let ready: HashSet<&str> = ready.iter().map(|case| case.id.as_str()).collect();
    let is_missing = |id: &&TestCaseId| !ready.contains(id.to_string().as_str());
    asked.iter().filter(is_missing).take(MOST_PROBLEMS).copied().collect()
}

/// Fails if there are test cases, with these identifiers, that cannot be executed.
pub(super) fn all_ready(missing: &[String]) -> Result<(), Fault> {
    let mut check = Check::default();
    for identifier in missing {
        check.refuse(below("TestCases", identifier), "has no test plan that is ReadyForExecution");
    }
    check.done()
}
