//! Ends of launches and of their executions, in any order and in spite of faults.

use anyhow::Result;
use assay_database::begin;
use assay_proto::{ExecutionStatus, TestResult};
use assay_testkit::eventually;
use futures::future::try_join_all;

use super::{LATE, counts};
use crate::world::{Reported, Server, World};

#[tokio::test]
async fn without_a_caller_the_requests_of_a_launch_become_an_artifact_after_a_day() -> Result<()> {
    let world = World::new().await?;
    world.start_launch("Nightly").await?.test("pays", "PASSED").await?;
    let replica = world.launches_of_replica()?;
    world.close_launches_with(&replica).await?;
    assert_eq!(world.count(LATE).await?, 0);

    world.change("update launch set due_at = now() - interval '25 hours'").await?;
    replica.round().await?;

    assert_eq!(world.count(LATE).await?, 1);
    let ended = "select count(*) from execution where status = 'Completed'";
    assert_eq!(world.count(ended).await?, 1);
    Ok(())
}

#[tokio::test]
async fn a_launch_that_no_program_survives_is_given_up_until_an_operator_retries_it() -> Result<()>
{
    let world = World::new().await?;
    let launch = world.start_launch("Nightly").await?;
    launch.test("pays", "PASSED").await?;
    let id = launch.finish().await?;
    // Programs began to store its results, and did not survive.
    let taken = "insert into unfinished_work (kind, customer_id, id, taken)
                 select 'launch', customer_id, id, 5 from launch";
    world.change(taken).await?;
    let given_up = "select count(*) from unfinished_work where given_up_at is not null";
    for _ in 0..2 {
        world.close_launches().await?;
        assert_eq!(world.count(given_up).await?, 1);
        assert_eq!(world.execution(&id).await?.status(), ExecutionStatus::Running);
    }
    retry(&world, "launch").await?;
    world.close_launches().await?;
    let execution = world.execution(&id).await?;
    assert_eq!(execution.status(), ExecutionStatus::Completed);
    assert_eq!(execution.result(), TestResult::Passed);
    assert_eq!(world.count("select count(*) from unfinished_work").await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_launch_that_was_given_up_is_kept_as_an_artifact_after_a_day() -> Result<()> {
    let world = World::new().await?;
    let launch = world.start_launch("Nightly").await?;
    launch.test("pays", "PASSED").await?;
    let id = launch.finish().await?;
    let given_up = "insert into unfinished_work (kind, customer_id, id, taken, given_up_at)
                    select 'launch', customer_id, id, 0, now() from launch";
    world.change(given_up).await?;
    world.close_launches().await?;
    assert_eq!(world.count(LATE).await?, 0);

    world.change("update launch set due_at = now() - interval '25 hours'").await?;
    world.launches_of_replica()?.round().await?;
    assert_eq!(world.count(LATE).await?, 1);
    assert_eq!(world.execution(&id).await?.status(), ExecutionStatus::Completed);
    Ok(())
}

#[tokio::test]
async fn the_results_of_a_dropped_launch_are_not_stored() -> Result<()> {
    let world = World::new().await?;
    let launch = world.start_launch("Nightly").await?;
    launch.test("pays", "PASSED").await?;
    launch.finish().await?;
    let given_up = "insert into unfinished_work (kind, customer_id, id, taken, given_up_at)
                    select 'launch', customer_id, id, 0, now() from launch";
    world.change(given_up).await?;
    let mut connection = world.db.acquire().await?;
    let launches = assay_execution::WORK.iter().find(|work| work.kind == "launch").unwrap();
    assert_eq!(launches.drop(&mut connection, None).await?, 1);
    world.close_launches().await?;
    for left in
        [LATE, "select count(*) from launch_request", "select count(*) from unfinished_work"]
    {
        assert_eq!(world.count(left).await?, 0, "{left}");
    }
    Ok(())
}

/// Has dead letters of a kind attempted again.
async fn retry(world: &World, kind: &str) -> Result<()> {
    let mut connection = world.db.acquire().await?;
    for work in assay_execution::WORK.iter().filter(|work| work.kind == kind) {
        work.retry(&mut connection, None).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_launch_with_more_items_than_fit_into_memory_is_kept_as_artifacts() -> Result<()> {
    let world = World::new().await?;
    let launch = world.start_launch("Nightly").await?;
    launch.test("pays", "PASSED").await?;
    let id = launch.finish().await?;
    world
        .change(
            "insert into launch_request (customer_id, launch_id, kind, item_id, body)
             select customer_id, id, 'Start', gen_random_uuid(), '{\"name\":\"x\"}'
             from launch, generate_series(1, 110000)",
        )
        .await?;
    world.close_launches().await?;
    assert!(world.count(LATE).await? > 0);
    assert_eq!(world.execution(&id).await?.status(), ExecutionStatus::Completed);
    Ok(())
}

#[tokio::test]
async fn the_execution_of_a_launch_does_not_end_before_its_results_are_stored() -> Result<()> {
    let world = World::new().await?;
    let launch = world.start_launch("Nightly").await?;
    launch.test("pays", "PASSED").await?;
    world.change("update execution set deadline = now() - interval '1 hour'").await?;
    world.reconcile().await?;

    let id = launch.finish().await?;
    world.change("update execution set deadline = now() - interval '1 hour'").await?;
    world.reconcile().await?;
    assert_eq!(world.execution(&id).await?.status(), ExecutionStatus::Running);
    world.close_launches().await?;
    assert_eq!(counts(&world.execution(&id).await?), [1, 0, 0, 1, 0]);
    Ok(())
}

#[tokio::test]
async fn results_that_a_user_does_not_wait_for_are_kept_as_an_artifact() -> Result<()> {
    for canceled in [true, false] {
        let world = World::new().await?;
        let launch = world.start_launch("Nightly").await?;
        let test = launch.test("pays", "PASSED").await?;
        launch.file(&test, "picture", "a picture").await?;
        let id = launch.finish().await?;
        if canceled {
            world.cancel(&id).await?;
        } else {
            world.complete(&id).await?;
        }
        world.close_launches().await?;

        assert_eq!(world.execution(&id).await?.statistic.unwrap().test_cases_passed, 0);
        assert_eq!(world.count(LATE).await?, 1);
        assert_eq!(world.files(), 2, "the requests and the picture");
        let ended = "select count(*) from launch where ended_at is not null and due_at is null";
        assert_eq!(world.count(ended).await?, 1);
        assert_eq!(world.differences().await?, 0);
    }
    Ok(())
}

#[tokio::test]
async fn many_launches_are_finished_at_the_same_time() -> Result<()> {
    let world = World::new().await?;
    let mut launches = Vec::new();
    for number in 0..12 {
        let launch = world.start_launch(&format!("Nightly {number}")).await?;
        launch.test("pays", "PASSED").await?;
        launches.push(launch);
    }
    let finished = try_join_all(launches.iter().map(Reported::finish)).await?;
    for id in finished {
        let execution = world.execution(&id).await?;
        assert_eq!(counts(&execution), [1, 1, 0, 0, 0], "the catalog has adopted the test case");
    }
    Ok(())
}

#[tokio::test]
async fn a_replica_that_is_killed_while_it_closes_a_launch_leaves_it_to_another() -> Result<()> {
    let world = World::new().await?;
    let launch = world.start_launch("Nightly").await?;
    launch.test("pays", "PASSED").await?;
    let id = launch.finish().await?;
    // The replica waits for the lock of the execution.
    let mut lock = begin(&world.db).await?;
    sqlx::query("select from execution for update").execute(&mut *lock).await?;
    world.change("update launch set due_at = now()").await?;
    let server = Server::start(&world)?;
    let waits = "select count(*) from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock'";
    eventually("the replica closes the launch", || async {
        (world.count(waits).await.unwrap() > 0).then_some(())
    })
    .await;
    server.kill();
    lock.rollback().await?;

    world.launches.round().await?;
    assert_eq!(world.execution(&id).await?.status(), ExecutionStatus::Running, "it is leased");
    world.change("update launch set leased_until = now()").await?;
    eventually("the other replica closes the launch", || async {
        world.launches.round().await.unwrap();
        let execution = world.execution(&id).await.unwrap();
        (execution.status() == ExecutionStatus::Completed).then_some(())
    })
    .await;
    assert_eq!(counts(&world.execution(&id).await?), [1, 0, 0, 1, 0]);
    Ok(())
}

#[tokio::test]
async fn a_launch_that_takes_long_does_not_delay_others() -> Result<()> {
    let world = World::new().await?;
    let stuck = world.start_launch("Stuck").await?.finish().await?;
    let launch = world.start_launch("Nightly").await?;
    launch.test("pays", "PASSED").await?;
    let mut lock = begin(&world.db).await?;
    let locking = sqlx::query("select from execution where id = $1::uuid for update");
    locking.bind(&stuck).execute(&mut *lock).await?;
    world
        .change(
            "update launch set due_at = now() - interval '1 minute' where finished_at is not null",
        )
        .await?;

    let close_another = async {
        let waits = "select count(*) from pg_stat_activity
             where datname = current_database() and wait_event_type = 'Lock'";
        eventually("one launch is being closed", || async {
            (world.count(waits).await.unwrap() > 0).then_some(())
        })
        .await;
        let id = launch.finish().await?;
        world.change("update launch set due_at = now() where leased_until is null").await?;
        eventually("another launch is closed", || async {
            let execution = world.execution(&id).await.unwrap();
            (execution.status() == ExecutionStatus::Completed).then_some(())
        })
        .await;
        anyhow::Ok(())
    };
    tokio::select! {
        _ = world.launches.round() => panic!("the execution is locked"),
        closed = close_another => closed?,
    }
    Ok(())
}
