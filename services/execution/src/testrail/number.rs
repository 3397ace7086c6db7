//! The numbers of records, by which clients of TestRail know them.

use assay_proto::{
    Fault,
    execution::{NumberedKind, NumberedRecord},
};
use sqlx::FromRow;
use uuid::Uuid;

/// The last number of a test case that follows from its identifier. Others have larger numbers, so
/// that test cases which were imported from TestRail keep theirs.
const LAST_OF_IDENTIFIERS: i64 = 999_999_999;

/// Number of the test cases that a test case number can have.
const TEST_CASES: i64 = 1 << 31;

/// Kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Project,
    TestCase,
    Section,
    Run,
    Result,
    Attachment,
}

impl Kind {
    pub(super) fn of(kind: NumberedKind) -> Result<Self, Fault> {
        match kind {
            NumberedKind::Project => Ok(Self::Project),
            NumberedKind::TestCase => Ok(Self::TestCase),
            NumberedKind::Section => Ok(Self::Section),
            NumberedKind::Run => Ok(Self::Run),
            NumberedKind::Result => Ok(Self::Result),
            NumberedKind::Attachment => Ok(Self::Attachment),
            NumberedKind::Unspecified => Err(Fault::Malformed("the kind is missing".to_owned())),
        }
    }

    /// Returns the name in the database.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Project => "Project",
            Self::TestCase => "TestCase",
            Self::Section => "Section",
            Self::Run => "Run",
            Self::Result => "Result",
            Self::Attachment => "Attachment",
        }
    }

    /// Returns the noun in errors.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::TestCase => "test case",
            Self::Section => "section",
            Self::Run => "run",
            Self::Result => "result",
            Self::Attachment => "attachment",
        }
    }

    /// Returns the maximum size of the details, in bytes. An answer has those of up to 251 records,
    /// but of one run only, which may name all test cases of the largest test set.
    pub(super) fn largest_details(self) -> usize {
        if self == Self::Run { 2 << 20 } else { 8 << 10 }
    }

    /// Returns the number before the first one that is assigned.
    pub(super) fn before_first(self) -> i64 {
        if self == Self::TestCase { LAST_OF_IDENTIFIERS } else { 0 }
    }
}

/// A record with its number.
#[derive(Clone, Debug, Default, FromRow)]
pub(super) struct Numbered {
    pub(super) number: i64,
    pub(super) scope_id: Uuid,
    pub(super) key: String,
    pub(super) details: String,
}

impl From<Numbered> for NumberedRecord {
    fn from(record: Numbered) -> Self {
        Self {
            number: record.number,
            scope_id: record.scope_id.to_string(),
            key: record.key,
            details: record.details,
        }
    }
}

/// Returns the number of a test case that its identifier states: 101 for `C101`.
pub(super) fn of_identifier(identifier: &str) -> Option<i64> {
    let number = identifier.strip_prefix('C')?.parse().ok()?;
    // There is one spelling of each number.
    (self::identifier(number).as_deref() == Some(identifier)).then_some(number)
}

/// Returns the identifier that states a number of a test case.
pub(super) fn identifier(number: i64) -> Option<String> {
    (1..=LAST_OF_IDENTIFIERS).contains(&number).then(|| format!("C{number}"))
}

/// Returns the number of the test case of a test, which is a test case in a run. JavaScript can
/// represent the numbers of tests in the first four million runs.
pub(super) fn test_case_of(test: i64) -> i64 {
    test % TEST_CASES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_of_testrail_state_their_numbers() {
        assert_eq!(of_identifier("C101"), Some(101));
        assert_eq!(identifier(101).as_deref(), Some("C101"));
        assert_eq!(identifier(LAST_OF_IDENTIFIERS + 1), None);
        for other in ["C0101", "C0", "C", "C+1", "C-1", "c101", "C101 pays", "C1000000000"] {
            assert_eq!(of_identifier(other), None, "{other}");
        }
    }

    #[test]
    fn tests_are_test_cases_of_a_run() {
        let case = Kind::TestCase.before_first() + 7;
        assert_eq!(test_case_of(3 * TEST_CASES + case), case);
    }
}
