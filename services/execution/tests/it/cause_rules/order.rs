//! Causes that are derived again while somebody reviews.

use std::pin::pin;

use anyhow::Result;
use assay_database::begin;
use assay_execution::derive_changed;
use assay_proto::execution::CreateKnownFailureInput;
use assay_testkit::waits_for_lock;
use serde_json::json;

use super::{causes, create, same};
use crate::{
    changes::{failed, run},
    known_failures::{create as make_known, in_days},
    world::World,
};

#[tokio::test]
async fn known_failures_follow_their_causes_in_the_order_of_reviews() -> Result<()> {
    let world = World::new().await?;
    let results = json!([failed("a", "no bank"), failed("b", "bank is closed")]);
    let mut fingerprints = causes(&world, &run(&world, "main", results).await?).await?;
    fingerprints.sort();
    for fingerprint in &fingerprints {
        let known = CreateKnownFailureInput {
            fingerprint: fingerprint.clone(),
            every_case: true,
            muted_until: Some(in_days(30)),
            ..Default::default()
        };
        make_known(&world, known).await?;
    }
    create(&world, same(&fingerprints[0], &fingerprints[1])).await?;
    // No transaction that began before it is left.
    world.change("update changed_causes set horizon = '1'").await?;
    let mut review = begin(&world.db).await?;
    let first = "select from known_failure order by fingerprint limit 1 for update";
    sqlx::query(first).execute(&mut *review).await?;

    let mut derived = pin!(derive_changed(&world.db));
    waits_for_lock(&world.db, derived.as_mut()).await?;
    let free = "select count(*) from (select id from known_failure for update skip locked) as free";
    let free: i64 = sqlx::query_scalar(free).fetch_one(&mut *review).await?;
    assert_eq!(free, 2, "it has locked none of the later ones");
    review.commit().await?;
    derived.await?;
    assert_eq!(world.count("select count(*) from known_failure").await?, 1);
    Ok(())
}
