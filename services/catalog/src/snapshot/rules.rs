//! The rules for snapshots and for the test cases that test tools report.

use std::collections::HashSet;

use assay_proto::{Fault, TestCaseId, TestPlanId, catalog::ReportedTestCase};
use assay_records::{Check, MOST_PROBLEMS, below};
use assay_rpc::parts;
use sqlx::FromRow;

pub(super) const SUBJECT: &str = "SubjectId";
pub(super) const ENVIRONMENT: &str = "EnvironmentId";

/// Maximum size of a snapshot, in bytes.
const LARGEST: i64 = 64 << 20;

/// Maximum size of the part of a snapshot that is copied at once, in bytes, unless one test case is
/// larger.
const PART: usize = 1 << 20;

/// Maximum number of test cases that a test tool reports at once.
const MOST_CASES: usize = 100_000;

/// Maximum size of the names and identifiers that a test tool reports at once, in bytes.
const MOST_BYTES: usize = 32 << 20;

/// A test case that will be executed, with its plan.
#[derive(Clone, Copy, Debug, FromRow)]
pub(super) struct ExecutableCase {
    #[sqlx(rename = "test_case_id")]
    pub(super) case: TestCaseId,
    #[sqlx(rename = "id")]
    pub(super) plan: TestPlanId,
    /// Size of its copy, in bytes.
    pub(super) size: i64,
    /// Whether the content of a variable has to match a rule.
    pub(super) has_rules: bool,
}

pub(super) fn not_too_many(cases: usize, bytes: usize) -> Result<(), Fault> {
    if cases > MOST_CASES {
        return Err(Fault::invalid("TestCases", format!("must be at most {MOST_CASES}")));
    }
    if bytes > MOST_BYTES {
        let problem = format!("must have names of at most {} MiB", MOST_BYTES >> 20);
        return Err(Fault::invalid("TestCases", problem));
    }
    Ok(())
}

/// Checks reported test cases and returns each identifier once.
pub(super) fn reported(cases: Vec<ReportedTestCase>) -> Result<Vec<ReportedTestCase>, Fault> {
    let mut check = Check::default();
    for (index, case) in cases.iter().enumerate() {
        for (field, text) in [("Identifier", &case.identifier), ("Name", &case.name)] {
            let field = format!("TestCases/{index}/{field}");
            check.name(&field, text);
            check.text(&field, text);
        }
    }
    check.done()?;
    let mut seen = HashSet::new();
    Ok(cases.into_iter().filter(|case| seen.insert(case.identifier.clone())).collect())
}

/// Returns the members that cannot be executed, at most as many as an error lists.
pub(super) fn missing(members: &[TestCaseId], ready: &[ExecutableCase]) -> Vec<TestCaseId> {
    let ready: HashSet<TestCaseId> = ready.iter().map(|chosen| chosen.case).collect();
    let is_missing = |id: &&TestCaseId| !ready.contains(*id);
    members.iter().filter(is_missing).take(MOST_PROBLEMS).copied().collect()
}

/// Fails if a snapshot of these test cases is too large.
pub(super) fn fits(chosen: &[ExecutableCase]) -> Result<(), Fault> {
    let size: i64 = chosen.iter().map(|chosen| chosen.size).sum();
    if size <= LARGEST {
        return Ok(());
    }
    let (size, most) = (size.div_euclid(1 << 20), LARGEST >> 20);
    let reason = format!(
        "the test plans of the set have {size} MiB of variables, more than the {most} MiB that an \
         execution can have; execute fewer test cases at once, in several test sets, or keep large \
         contents in files"
    );
    Err(Fault::Refused { code: "execution_too_large", reason })
}

/// Splits chosen test cases into parts that can be copied at once.
pub(super) fn parts(chosen: Vec<ExecutableCase>) -> Vec<Vec<ExecutableCase>> {
    parts::split(chosen, PART, |one| usize::try_from(one.size).unwrap_or(PART))
}

/// Fails if there are test cases that cannot be executed; `missing` are their identifiers.
pub(super) fn all_ready(missing: &[String]) -> Result<(), Fault> {
    let mut check = Check::default();
    for identifier in missing {
        check.refuse(below("TestCases", identifier), "has no test plan that is ReadyForExecution");
    }
    check.done()
}
