//! Streams a test set with its test cases, which may be more than fit into one message.

use assay_proto::{
    CustomerId, Fault, TestSetId,
    catalog::{TestCase, TestSet},
};
use assay_rpc::list::{self, Batches, Rows, Slice};
use futures::{StreamExt, TryStreamExt, stream};
use sqlx::{PgConnection, PgPool};
use tonic::{Response, Status};

use super::members;

/// Returns the first test cases of a set. A transaction that changes the set reads them before its
/// commit, so that after the commit only the stream can fail.
pub(super) async fn first_cases(
    db: &mut PgConnection,
    customer: CustomerId,
    id: TestSetId,
) -> Result<Rows<TestCase>, Fault> {
    members::list_after(db, customer, id, i64::MIN, &Slice::first()).await
}

/// Returns the stream of a test set. Its first message holds the set and `first_cases`, the others
/// hold the rest of its test cases.
pub(super) fn answer(
    db: &PgPool,
    customer: CustomerId,
    id: TestSetId,
    set: TestSet,
    first_cases: Rows<TestCase>,
) -> Result<Response<Batches<TestSet>>, Fault> {
    if first_cases.items.is_empty() {
        return Ok(Response::new(stream::once(async move { Ok(set) }).boxed()));
    }
    let db = db.clone();
    let parts = list::begun(first_cases, move |slice| {
        let db = db.clone();
        async move { members::list(&db, customer, id, &slice).await }
    })?;
    let mut head = Some(set);
    let parts =
        parts.map_ok(move |test_cases| TestSet { test_cases, ..head.take().unwrap_or_default() });
    Ok(Response::new(parts.map_err(Status::from).boxed()))
}
