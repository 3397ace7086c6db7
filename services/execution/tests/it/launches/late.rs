//! Requests that arrive late: while the results of their launch are stored, or after them.

use std::pin::pin;

use anyhow::Result;
use assay_database::begin;
use assay_execution::QuotaConfig;
use assay_proto::ExecutionStatus;
use assay_testkit::waits_for_lock;
use futures::future::join_all;
use serde_json::json;

use super::{LATE, counts};
use crate::world::{World, reason};

#[tokio::test]
async fn a_request_that_arrives_while_results_are_stored_becomes_a_result() -> Result<()> {
    let world = World::new().await?;
    let launch = world.start_launch("Nightly").await?;
    launch.test("pays", "PASSED").await?;
    let id = launch.finish().await?;
    world.change("update launch set due_at = now()").await?;
    // The requests have been read when the lock of the execution is waited for.
    let mut lock = begin(&world.db).await?;
    sqlx::query("select from execution for update").execute(&mut *lock).await?;
    let mut round = pin!(world.launches.round());
    waits_for_lock(&world.db, round.as_mut()).await?;
    launch.test("ships", "FAILED").await?;
    // Storing takes so long that the launch is due again.
    world.change("update launch set due_at = now() - interval '1 minute'").await?;
    lock.rollback().await?;
    round.await?;

    world.close_launches().await?;
    let ended = world.execution(&id).await?;
    assert_eq!(ended.status(), ExecutionStatus::Completed);
    assert_eq!(counts(&ended), [2, 0, 0, 1, 1]);
    assert_eq!(world.count(LATE).await?, 0);
    Ok(())
}

#[tokio::test]
async fn late_requests_of_a_merged_launch_are_kept_with_its_results() -> Result<()> {
    for are_stored in [false, true] {
        let world = World::new().await?;
        let (one, other) = (world.start_launch("Part").await?, world.start_launch("Part").await?);
        let test = one.test("pays", "PASSED").await?;
        other.test("ships", "PASSED").await?;
        for launch in [&one, &other] {
            launch.finish().await?;
        }
        if are_stored {
            world.close_launches().await?;
        }
        let merged = world.merge(&[&one.id, &other.id]).await?;
        world.close_launches().await?;
        one.log(&test, "ERROR", "a late log").await?;
        one.file(&test, "picture", "a late picture").await?;
        // The first round hands them to the other launch.
        for _ in 0..2 {
            world.close_launches().await?;
        }

        assert_eq!(counts(&world.execution(&merged).await?), [2, 0, 0, 2, 0]);
        assert_eq!(world.count(LATE).await?, 1);
        let elsewhere = "select count(*) from artifact
             where execution_id <> (select max(id::text)::uuid from execution)";
        assert_eq!(world.count(elsewhere).await?, 0);
        let due = "select count(*) from launch where due_at is not null";
        assert_eq!(world.count(due).await?, 0);
        world.forget_requests().await?;
        assert_eq!(world.count("select count(*) from launch_request").await?, 0);
    }
    Ok(())
}

#[tokio::test]
async fn late_requests_are_dropped_when_the_results_have_expired() -> Result<()> {
    let world = World::new().await?;
    let launch = world.start_launch("Nightly").await?;
    let test = launch.test("pays", "PASSED").await?;
    launch.finish().await?;
    world.close_launches().await?;
    world.change("update execution set expired_at = now()").await?;
    launch.file(&test, "picture", "a late picture").await?;
    world.close_launches().await?;

    assert_eq!(world.count("select count(*) from artifact").await?, 0);
    assert_eq!(world.files(), 0);
    assert_eq!(world.count("select count(*) from launch where due_at is not null").await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_launch_is_not_merged_for_the_sake_of_late_requests() -> Result<()> {
    let world = World::new().await?;
    let launch = world.start_launch("Nightly").await?;
    let test = launch.test("pays", "PASSED").await?;
    launch.finish().await?;
    world.close_launches().await?;
    world.forget_requests().await?;
    launch.log(&test, "INFO", "a late log").await?;
    world.close_launches().await?;

    let refused = world.merge(&[&launch.id]).await.unwrap_err();
    assert_eq!(reason(&refused), "launch_ended", "its results would be lost");
    assert_eq!(world.count("select count(*) from launch_request").await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_file_of_a_log_needs_room_for_an_artifact() -> Result<()> {
    let world = World::with_quota(QuotaConfig { artifacts_gib: 1, ..Default::default() }).await?;
    let launch = world.start_launch("Nightly").await?;
    let test = launch.item(None, "pays", json!({})).await?;
    launch.file(&test, "small", "a picture").await?;
    let used = "insert into usage select customer_id, 'artifacts', (1 << 30) - 5 from execution";
    world.change(used).await?;

    let refused = launch.file(&test, "large", "a picture").await.unwrap_err();
    assert_eq!(reason(&refused), "quota_exceeded");
    launch.log(&test, "INFO", "logs without a file need none").await?;
    let files = "select count(*) from launch_request where kind = 'File'";
    assert_eq!(world.count(files).await?, 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_logs_do_not_exceed_the_quota_together() -> Result<()> {
    let world = World::with_quota(QuotaConfig { artifacts_gib: 1, ..Default::default() }).await?;
    let launch = world.start_launch("Nightly").await?;
    let test = launch.item(None, "pays", json!({})).await?;
    // One picture of nine bytes fits.
    let used = "insert into usage select customer_id, 'artifacts', (1 << 30) - 10 from execution";
    world.change(used).await?;

    let sent = ["1", "2", "3", "4"].map(|name| launch.file(&test, name, "a picture"));
    let refused: Vec<_> = join_all(sent).await.into_iter().filter_map(Result::err).collect();
    assert_eq!(refused.len(), 3, "{refused:?}");
    assert!(refused.iter().all(|status| reason(status) == "quota_exceeded"), "{refused:?}");

    launch.finish().await?;
    world.close_launches().await?;
    let refused = launch.file(&test, "5", "a picture").await.unwrap_err();
    assert_eq!(reason(&refused), "quota_exceeded");
    assert_eq!(world.count("select count(*) from artifact where size = 9").await?, 1);
    Ok(())
}
