//! Execution times whose executions are removed, merged, imported or damaged.

use anyhow::Result;
use assay_execution::{count_execution_times, enforce_retention, purge_deleted, rebuild};
use assay_proto::execution::{ListExecutionTimesRequest, OpenExecutionInput};
use serde_json::json;

use super::{assert_near, list, recount, report, sum};
use crate::{
    retention::{completed, set_retention},
    world::World,
};

#[tokio::test]
async fn retention_and_deletion_do_not_change_execution_times() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 2)]).await?;
    let expired = completed(&world, 31).await?;
    report(&world).await?;
    // Neither has been counted when its results or its project go.
    let running = world.start().await?;
    let one =
        json!([{ "Identifier": "a", "InstanceNr": 1, "Result": "Passed", "DurationInSec": 7 }]);
    world.report(&running.id, one).await?;
    let (instances, duration) = recount(&world).await?;
    set_retention(&world, 30).await?;
    enforce_retention(&world.db, world.artifacts_store()).await?;
    assert_eq!(recount(&world).await?.0, instances - 2, "those of {} are gone", expired.id);

    count_execution_times(&world.db).await?;
    assert_eq!(world.differences().await?, 0);
    let total = "select coalesce(sum(instances), 0)::bigint from execution_time";
    assert_eq!(world.count(total).await?, instances - 1, "one execution has not ended");

    let deletion = "insert into deletion (customer_id, project_id)
                    select distinct customer_id, project_id from execution";
    world.change(deletion).await?;
    purge_deleted(&world.db, world.artifacts_store()).await?;

    assert_eq!(world.count("select count(*) from execution").await?, 0);
    assert_eq!(world.count(total).await?, instances);
    let stored: f64 = sqlx::query_scalar("select sum(duration_in_sec) from execution_time")
        .fetch_one(&world.db)
        .await?;
    assert_near(stored, duration);
    let times = list(&world, ListExecutionTimesRequest::default()).await?;
    assert!(times.iter().all(|time| time.test_set_name.is_none()), "{times:?}");
    assert_eq!((world.differences().await?, rebuild(&world.db).await?), (0, 0));
    assert_eq!(world.count(total).await?, instances, "rebuild keeps what it cannot derive");

    world
        .change(
            "insert into deletion (customer_id, project_id)
             select distinct customer_id, '00000000-0000-0000-0000-000000000000'::uuid
             from execution_time",
        )
        .await?;
    purge_deleted(&world.db, world.artifacts_store()).await?;
    assert_eq!(world.count(total).await?, 0, "the rows of a deleted customer are removed");
    Ok(())
}

#[tokio::test]
async fn merged_launches_count_once() -> Result<()> {
    for are_counted in [false, true] {
        let world = World::new().await?;
        let (one, other) = (world.start_launch("Part").await?, world.start_launch("Part").await?);
        for (launch, name) in [(&one, "one"), (&other, "two")] {
            launch.test(name, "PASSED").await?;
            launch.finish().await?;
        }
        if are_counted {
            world.close_launches().await?;
            count_execution_times(&world.db).await?;
            assert_eq!(sum(&world).await?.executions, 2);
        }
        world.merge(&[&one.id, &other.id]).await?;
        world.close_launches().await?;
        count_execution_times(&world.db).await?;

        let sum = sum(&world).await?;
        assert_eq!((sum.executions, sum.instances), (1, 2));
        assert_eq!(world.differences().await?, 0);
    }
    Ok(())
}

#[tokio::test]
async fn results_of_the_past_were_executed_elsewhere() -> Result<()> {
    let world = World::new().await?;
    let imported = OpenExecutionInput {
        project: "Shop".to_owned(),
        test_set: "Nightly".to_owned(),
        request_time: Some(serde_json::from_value(json!("2026-01-10T10:00:00Z"))?),
        ..OpenExecutionInput::default()
    };
    let imported = world.open(imported).await?;
    let one = json!([{ "Identifier": "a", "Result": "Passed", "DurationInSec": 7 }]);
    world.report(&imported.id, one).await?;
    world.complete(&imported.id).await?;
    count_execution_times(&world.db).await?;
    assert_eq!(world.count("select count(*) from execution_time").await?, 0);
    assert_eq!(world.differences().await?, 0);
    Ok(())
}

#[tokio::test]
async fn damaged_execution_times_are_found_and_repaired() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 2)]).await?;
    report(&world).await?;
    report(&world).await?;
    count_execution_times(&world.db).await?;
    let before = list(&world, ListExecutionTimesRequest::default()).await?;
    for damage in [
        "delete from execution_time",
        "update execution_time set duration_in_sec = duration_in_sec + 1",
        "update execution_time set instances = instances + 1",
        "update execution_time set target_group = 'planted'",
        "update execution_time set month = '2020-01-01'",
    ] {
        world.change(damage).await?;
        assert_eq!(world.differences().await?, 2, "{damage}");
        assert_eq!(rebuild(&world.db).await?, 2, "{damage}");
        assert_eq!(list(&world, ListExecutionTimesRequest::default()).await?, before, "{damage}");
    }
    Ok(())
}
