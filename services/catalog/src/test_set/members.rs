//! The test cases of a set, in its order. A transaction that writes them has locked the set.
//!
//! Archived cases stay members, but are not shown. They keep their position for when they leave the
//! archive.

use assay_proto::{CustomerId, Fault, ProjectId, TestCaseId, TestSetId, catalog::TestCase};
use assay_rpc::list::{Rows, Slice};
use sqlx::{AssertSqlSafe, PgExecutor, PgTransaction};

use super::rules::{self, References};

/// Lists a slice of the active members, in the order of the set.
pub(crate) async fn list(
    db: impl PgExecutor<'_> + Copy,
    customer: CustomerId,
    set: TestSetId,
    slice: &Slice,
) -> Result<Rows<TestCase>, Fault> {
    let after = match &slice.after {
        Some(cursor) => Some(position(db, customer, set, cursor).await?),
        None => None,
    };
    list_after(db, customer, set, after.unwrap_or(i64::MIN), slice).await
}

/// Lists the active members of a slice that come after a position.
pub(super) async fn list_after(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    set: TestSetId,
    position: i64,
    slice: &Slice,
) -> Result<Rows<TestCase>, Fault> {
    let columns = TestCase::COLUMNS;
    let cases = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from test_set_case member
         join test_case on test_case.customer_id = $1 and test_case.id = member.test_case_id
         where member.customer_id = $1 and member.test_set_id = $2 and member.position > $3
           and test_case.live
           and ($4::text is null or test_case.name ilike $4 or test_case.identifier ilike $4)
         order by member.position
         limit $5"
    )));
    let cases =
        cases.bind(customer).bind(set).bind(position).bind(&slice.pattern).bind(slice.limit);
    slice.read(cases.fetch(db)).await
}

/// Returns the position of the member that a cursor names.
async fn position(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    set: TestSetId,
    cursor: &str,
) -> Result<i64, Fault> {
    let position = sqlx::query_scalar(
        "select position from test_set_case
         where customer_id = $1 and test_set_id = $2 and test_case_id = $3",
    );
    position
        .bind(customer)
        .bind(set)
        .bind(TestCaseId::from_field("cursor", cursor)?)
        .fetch_optional(db)
        .await?
        .ok_or_else(|| Fault::invalid("cursor", "names a test case that left the set"))
}

/// Returns the ids of the active members, in the order of the set.
pub(crate) async fn ids(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    set: TestSetId,
) -> Result<Vec<TestCaseId>, Fault> {
    let ids = sqlx::query_scalar(
        "select member.test_case_id from test_set_case member
         join test_case on test_case.customer_id = $1 and test_case.id = member.test_case_id
         where member.customer_id = $1 and member.test_set_id = $2 and test_case.live
         order by member.position",
    );
    Ok(ids.bind(customer).bind(set).fetch_all(&mut **tx).await?)
}

/// Fails if not all of these are active test cases of the project.
pub(super) async fn check_live(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    cases: &References,
) -> Result<(), Fault> {
    let live = find(tx, customer, project, &cases.ids).await?.into_iter();
    rules::all_exist(cases, &live.filter(|(_, live)| *live).map(|(id, _)| id).collect())
}

/// Fails if not all of these are test cases of the project, archived or not.
pub(super) async fn check_known(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    cases: &References,
) -> Result<(), Fault> {
    let known = find(tx, customer, project, &cases.ids).await?.into_iter();
    rules::all_exist(cases, &known.map(|(id, _)| id).collect())
}

/// Returns those of the ids that are test cases of the project, and whether they are active.
async fn find(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    cases: &[TestCaseId],
) -> Result<Vec<(TestCaseId, bool)>, Fault> {
    let cases = sqlx::query_as(
        "select id, live from test_case
         where customer_id = $1 and project_id = $2 and id = any($3) and deleted_at is null",
    )
    .bind(customer)
    .bind(project)
    .bind(cases);
    Ok(cases.fetch_all(&mut **tx).await?)
}

/// Adds test cases that are not members yet to the end of the set. Returns their number.
pub(crate) async fn include(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    set: TestSetId,
    cases: &[TestCaseId],
) -> Result<u64, Fault> {
    let done = sqlx::query(
        "with added as (
             select id, min(number) as number
             from unnest($3::uuid[]) with ordinality as listed (id, number)
             group by id
         ), last as (
             select coalesce(max(position), 0) as position from test_set_case
             where customer_id = $1 and test_set_id = $2
         )
         insert into test_set_case (customer_id, test_set_id, test_case_id, position)
         select $1, $2, added.id, last.position + added.number from added, last
         order by added.number
         on conflict on constraint test_set_case_pkey do nothing",
    );
    let done = done.bind(customer).bind(set).bind(cases).execute(&mut **tx).await?;
    Ok(done.rows_affected())
}

/// Replaces the active members of the set, in this order.
pub(super) async fn replace(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    set: TestSetId,
    cases: &[TestCaseId],
) -> Result<(), Fault> {
    let before = ids(tx, customer, set).await?;
    exclude(tx, customer, set, &before).await?;
    include(tx, customer, set, cases).await?;
    Ok(())
}

/// Removes members from the set. Returns their number.
pub(super) async fn exclude(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    set: TestSetId,
    cases: &[TestCaseId],
) -> Result<u64, Fault> {
    let done = sqlx::query(
        "delete from test_set_case
         where customer_id = $1 and test_set_id = $2 and test_case_id = any($3)",
    );
    let done = done.bind(customer).bind(set).bind(cases).execute(&mut **tx).await?;
    Ok(done.rows_affected())
}
