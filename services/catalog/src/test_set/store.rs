//! Test sets in PostgreSQL, without their test cases.

use assay_proto::{
    CustomerId, Fault, InputColumns, ProjectId, Rendered, TestCaseId, TestSetId,
    catalog::{RecordKind, TestSet, TestSetEntry, TestSetInput},
};
use assay_rpc::list::{Rows, Slice};
use sqlx::{AssertSqlSafe, PgExecutor, PgTransaction};

use crate::records::{Columns, ProjectRecord};

impl ProjectRecord for TestSet {
    type Id = TestSetId;
    type Entry = Rendered<TestSetEntry>;

    const KIND: RecordKind = RecordKind::TestSet;
    const TABLE: &'static str = "test_set";
    const NOUN: &'static str = "test set";
    const SEARCH: &'static str = "name ilike $4";
    const COLUMNS_OF_RECORD: Columns = &[Self::COLUMNS];
    const COLUMNS_OF_ENTRY: Columns = &[TestSetEntry::COLUMNS];
}

/// Lists a slice of the active test sets that include a test case, newest first. `archived` is
/// whether the test case is in the archive.
pub(super) async fn list_of_case(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    case: TestCaseId,
    archived: bool,
    slice: &Slice,
) -> Result<Rows<Rendered<TestSetEntry>>, Fault> {
    let columns = TestSetEntry::COLUMNS;
    let sets = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from test_set
         where customer_id = $1 and live and id < $3
           and id in (
               select test_set_id from test_set_case
               where customer_id = $1 and test_case_id = $2
           )
           and exists (
               select from test_case where customer_id = $1 and id = $2 and archived = $4
           )
           and ($5::text is null or name ilike $5)
         order by id desc
         limit $6"
    )));
    let sets = sets
        .bind(customer)
        .bind(case)
        .bind(slice.before()?)
        .bind(archived)
        .bind(&slice.pattern)
        .bind(slice.limit);
    slice.read(sets.fetch(db)).await
}

pub(super) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: TestSetId,
    set: &TestSetInput,
) -> Result<TestSetEntry, Fault> {
    let (columns, values) = (TestSetInput::COLUMNS, TestSetInput::values(4));
    let returned = TestSetEntry::COLUMNS;
    let insert = sqlx::query_as(AssertSqlSafe(format!(
        "insert into test_set (customer_id, project_id, id, {columns})
         values ($1, $2, $3, {values})
         returning {returned}"
    )));
    let insert = set.bind(insert.bind(customer).bind(project).bind(id));
    Ok(insert.fetch_one(&mut **tx).await?)
}

/// Writes the fields of a locked test set.
pub(super) async fn update(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: TestSetId,
    set: &TestSetInput,
) -> Result<TestSet, Fault> {
    let (assignments, returned) = (TestSetInput::assignments(4), TestSet::COLUMNS);
    let update = sqlx::query_as(AssertSqlSafe(format!(
        "update test_set set {assignments}, revision = revision + 1
         where customer_id = $1 and project_id = $2 and id = $3
         returning {returned}"
    )));
    let update = set.bind(update.bind(customer).bind(project).bind(id));
    Ok(update.fetch_one(&mut **tx).await?)
}

/// Increments the revision of a locked test set, whose test cases have changed. Returns its data
/// version.
pub(super) async fn touch(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: TestSetId,
) -> Result<String, Fault> {
    let revision = sqlx::query_scalar(
        "update test_set set revision = revision + 1
         where customer_id = $1 and id = $2
         returning revision::text",
    );
    Ok(revision.bind(customer).bind(id).fetch_one(&mut **tx).await?)
}
