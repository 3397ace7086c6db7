//! Reviews of the same causes by several users, in different executions.

use std::pin::pin;

use anyhow::Result;
use assay_database::begin;
use assay_proto::{
    TestResult,
    execution::{MuteInput, ReviewInput},
};
use assay_testkit::waits_for_lock;
use serde_json::json;

use crate::{
    changes::{failed, run},
    known_failures::{accepted, in_days, review},
    world::World,
};

#[tokio::test]
async fn a_review_locks_known_failures_in_one_order() -> Result<()> {
    let world = World::new().await?;
    let results: Vec<_> = (0..40).map(|nr| failed(&format!("t{nr}"), "lost")).collect();
    let execution = run(&world, "main", json!(results)).await?;
    let known = Some(MuteInput { every_case: false, muted_until: Some(in_days(7)) });
    let all = ReviewInput { result: Some(TestResult::Failed.into()), known, ..accepted() };
    assert_eq!(review(&world, &execution, all.clone()).await?.known_failures, 40);
    let mut other = begin(&world.db).await?;
    let first = "select from known_failure order by fingerprint, test_case_id limit 1 for update";
    sqlx::query(first).execute(&mut *other).await?;

    let mut reviewed = pin!(review(&world, &execution, all));
    waits_for_lock(&world.db, reviewed.as_mut()).await?;
    let free = "select count(*) from (select id from known_failure for update skip locked) as free";
    let free: i64 = sqlx::query_scalar(free).fetch_one(&mut *other).await?;
    assert_eq!(free, 40, "it has locked none of the later ones");
    other.commit().await?;
    assert_eq!(reviewed.await?.known_failures, 40);
    Ok(())
}
