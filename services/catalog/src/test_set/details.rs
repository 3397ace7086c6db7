//! The details of a test set, in parts: it may have more test cases than fit into a message.

use assay_proto::{CustomerId, Fault, TestSetId, catalog::TestSet};
use assay_runtime::list::{self, Batches};
use futures::{StreamExt, TryStreamExt, stream};
use sqlx::PgPool;
use tonic::{Response, Status};

use super::members;

/// Answers a test set: the first message holds all of it but the rest of its test cases.
pub(super) async fn answer(
    db: &PgPool,
    customer: CustomerId,
    id: TestSetId,
    set: TestSet,
) -> Result<Response<Batches<TestSet>>, Fault> {
    let db = db.clone();
    let parts = list::whole(None, None, move |slice| {
        let db = db.clone();
        async move { members::list(&db, customer, id, &slice).await }
    });
    let mut parts = Box::pin(parts);
    let test_cases = parts.try_next().await?.unwrap_or_default();
    let first = stream::once(async move { Ok(TestSet { test_cases, ..set }) });
    let rest = parts.map_ok(|test_cases| TestSet { test_cases, ..TestSet::default() });
    Ok(Response::new(Box::pin(first.chain(rest.map_err(Status::from)))))
}
