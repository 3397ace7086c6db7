//! The numbers by which clients know records.

use assay_proto::execution::{
    AssignNumbersRequest, FindNumbersRequest, ListNumbersRequest, NumberedKind, NumberedRecord,
    UpdateDetailsRequest,
};
use serde_json::{Map, Value};

use super::Session;
use crate::{problem::Problem, services::Runs};

/// Number of the test cases that a number can stand for.
const TEST_CASES: i64 = 1 << 31;

/// Returns the number of a test: of a test case in a run. A client can name a test case by any number,
/// which stays positive.
pub(super) fn test(run: i64, case: i64) -> i64 {
    run.saturating_mul(TEST_CASES).saturating_add(case)
}

/// Returns the numbers of the run and the test case of a test.
pub(super) fn of_test(test: i64) -> (i64, i64) {
    (test / TEST_CASES, test % TEST_CASES)
}

/// Returns a record that belongs to another one.
pub(super) fn record(scope_id: &str, key: &str, details: &Value) -> NumberedRecord {
    let details = if details.is_null() { String::new() } else { details.to_string() };
    NumberedRecord { number: 0, scope_id: scope_id.to_owned(), key: key.to_owned(), details }
}

/// Returns the details of a record.
pub(super) fn details(record: &NumberedRecord) -> Map<String, Value> {
    serde_json::from_str(&record.details).unwrap_or_default()
}

impl Session {
    /// Returns the numbers of records of a project, or of projects, in their order.
    pub(super) async fn assign(
        &self,
        project_id: Option<&str>,
        kind: NumberedKind,
        records: Vec<NumberedRecord>,
    ) -> Result<Vec<NumberedRecord>, Problem> {
        if records.is_empty() {
            return Ok(records);
        }
        let project_id = project_id.map(str::to_owned);
        let with_details = kind != NumberedKind::Run;
        let request = AssignNumbersRequest { project_id, kind: kind.into(), records, with_details };
        let mut runs: Runs = self.client();
        Ok(runs.assign_numbers(self.caller.call(request)).await?.into_inner().records)
    }

    /// Returns the number of one record.
    pub(super) async fn assign_one(
        &self,
        project_id: Option<&str>,
        kind: NumberedKind,
        record: NumberedRecord,
    ) -> Result<NumberedRecord, Problem> {
        let numbered = self.assign(project_id, kind, vec![record]).await?;
        numbered.into_iter().next().ok_or_else(Problem::internal)
    }

    /// Returns the record with a number.
    pub(super) async fn find(
        &self,
        kind: NumberedKind,
        number: i64,
    ) -> Result<NumberedRecord, Problem> {
        let found = self.find_all(kind, vec![number]).await?;
        let unknown = || Problem::malformed(format!("{number} is not the ID of a {}", noun(kind)));
        found.into_iter().next().ok_or_else(unknown)
    }

    /// Returns the records with these numbers; unknown ones are left out.
    pub(super) async fn find_all(
        &self,
        kind: NumberedKind,
        numbers: Vec<i64>,
    ) -> Result<Vec<NumberedRecord>, Problem> {
        let request = FindNumbersRequest { kind: kind.into(), numbers };
        let mut runs: Runs = self.client();
        Ok(runs.find_numbers(self.caller.call(request)).await?.into_inner().records)
    }

    /// Returns records of a project, by number.
    pub(super) async fn list(
        &self,
        project_id: String,
        kind: NumberedKind,
        (offset, limit): (i64, i64),
    ) -> Result<Vec<NumberedRecord>, Problem> {
        let request = ListNumbersRequest { project_id, kind: kind.into(), offset, limit };
        let mut runs: Runs = self.client();
        Ok(runs.list_numbers(self.caller.call(request)).await?.into_inner().records)
    }

    /// Changes details of a record.
    pub(super) async fn change(
        &self,
        kind: NumberedKind,
        record: &NumberedRecord,
        changes: Map<String, Value>,
    ) -> Result<NumberedRecord, Problem> {
        let mut details = details(record);
        details.extend(changes);
        let details = Value::Object(details).to_string();
        let request = UpdateDetailsRequest { kind: kind.into(), number: record.number, details };
        let mut runs: Runs = self.client();
        Ok(runs.update_details(self.caller.call(request)).await?.into_inner())
    }
}

fn noun(kind: NumberedKind) -> &'static str {
    match kind {
        NumberedKind::Project => "project",
        NumberedKind::TestCase => "test case",
        NumberedKind::Section => "section",
        NumberedKind::Run => "test run",
        NumberedKind::Result => "result",
        NumberedKind::Attachment => "attachment",
        NumberedKind::Unspecified => "record",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_test_is_never_negative() {
        assert_eq!(of_test(test(3, 7)), (3, 7));
        for (run, case) in [(1, i64::MAX), (i64::MAX, 1), (i64::MAX, i64::MAX)] {
            assert!(test(run, case) > 0, "{run}, {case}");
        }
    }
}
