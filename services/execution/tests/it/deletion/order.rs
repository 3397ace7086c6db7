//! Deletions while others change what they delete.

use std::pin::pin;

use anyhow::Result;
use assay_database::begin;
use assay_ledger::deletion::{records, store};
use assay_proto::{
    Fault, ProjectId,
    execution::{CaseState, CreateKnownFailureInput},
};
use assay_testkit::waits_for_lock;
use serde_json::json;
use uuid::Uuid;

use crate::{
    changes::{failed, passed, reports, run},
    known_failures::{create, in_days},
    test_case_states::set,
    world::World,
};

/// Makes three causes known, in the reverse of the order in which reviews lock them.
async fn make_known(world: &World) -> Result<()> {
    let results =
        [failed("a", "no bank"), failed("b", "bank is closed"), failed("c", "card is lost")];
    let execution = run(world, "main", json!(results)).await?;
    let entries = reports(world, &execution).await?.into_iter();
    let mut causes: Vec<_> = entries.map(|entry| entry.fingerprint).collect();
    causes.sort_unstable();
    for fingerprint in causes.into_iter().rev() {
        let known = CreateKnownFailureInput {
            fingerprint,
            every_case: true,
            muted_until: Some(in_days(30)),
            ..Default::default()
        };
        create(world, known).await?;
    }
    Ok(())
}

/// Deletes the project, as its event does.
async fn delete_project(world: &World) -> Result<(), Fault> {
    let project = ProjectId::from_field("ProjectId", &world.project)?;
    let mut tx = begin(&world.db).await?;
    store::insert(&mut tx, world.user.customer, project).await?;
    Ok(tx.commit().await?)
}

/// Deletes test cases in the reverse order, as their events do.
async fn delete_cases(world: &World, cases: &[Uuid]) -> Result<(), Fault> {
    let project = ProjectId::from_field("ProjectId", &world.project)?;
    let deleted: Vec<_> = cases.iter().rev().map(|case| (project, *case)).collect();
    let mut tx = begin(&world.db).await?;
    records::insert(&mut tx, world.user.customer, &deleted).await?;
    Ok(tx.commit().await?)
}

/// Deletes the project while another transaction has locked a row, and returns the number of known failures that
/// the waiting deletion has not locked.
async fn free_while_locked(world: &World, lock: &'static str) -> Result<i64> {
    let mut other = begin(&world.db).await?;
    sqlx::query(lock).execute(&mut *other).await?;
    let mut deleted = pin!(delete_project(world));
    waits_for_lock(&world.db, deleted.as_mut()).await?;
    let free = "select count(*) from (select id from known_failure for update skip locked) as free";
    let free: i64 = sqlx::query_scalar(free).fetch_one(&mut *other).await?;
    other.commit().await?;
    deleted.await?;
    assert_eq!(world.count("select count(*) from known_failure").await?, 0);
    Ok(free)
}

#[tokio::test]
async fn the_deletion_of_a_project_locks_known_failures_in_the_order_of_reviews() -> Result<()> {
    let world = World::new().await?;
    make_known(&world).await?;
    let first = "select from known_failure order by fingerprint limit 1 for update";
    assert_eq!(free_while_locked(&world, first).await?, 3, "it has locked none of the later ones");
    Ok(())
}

#[tokio::test]
async fn the_deletion_of_a_project_locks_its_causes_before_known_failures() -> Result<()> {
    let world = World::new().await?;
    make_known(&world).await?;
    // Deriving causes locks the request, and then the known failures that follow.
    let request = "insert into changed_causes (customer_id, project_id)
                   select customer_id, project_id from known_failure limit 1";
    world.change(request).await?;
    let lock = "select from changed_causes for update";
    assert_eq!(free_while_locked(&world, lock).await?, 3);
    Ok(())
}

#[tokio::test]
async fn deletions_of_test_cases_lock_states_in_one_order() -> Result<()> {
    let world = World::new().await?;
    let results = json!([passed("a"), passed("b"), passed("c")]);
    let execution = run(&world, "main", results).await?;
    let cases = execution.test_reports.iter().map(|report| report.test_case_id.parse());
    let mut cases: Vec<Uuid> = cases.collect::<Result<_, _>>()?;
    cases.sort_unstable();
    for case in cases.iter().rev() {
        set(&world, &case.to_string(), CaseState::Muted).await?;
    }
    let mut other = begin(&world.db).await?;
    let first = "select from test_case_state order by test_case_id limit 1 for update";
    sqlx::query(first).execute(&mut *other).await?;

    let mut deleted = pin!(delete_cases(&world, &cases));
    waits_for_lock(&world.db, deleted.as_mut()).await?;
    let free = "select count(*)
                from (select test_case_id from test_case_state for update skip locked) as free";
    let free: i64 = sqlx::query_scalar(free).fetch_one(&mut *other).await?;
    assert_eq!(free, 3, "it has locked none of the later ones");
    other.commit().await?;
    deleted.await?;
    assert_eq!(world.count("select count(*) from test_case_state").await?, 0);
    Ok(())
}
