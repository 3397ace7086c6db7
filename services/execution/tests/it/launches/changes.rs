//! Launches that are changed after their start: merged, run again, with other attributes.

use std::pin::pin;

use anyhow::Result;
use assay_execution::roll_up;
use assay_proto::{ResultChange, TestResult, execution::UpdateLaunchRequest};
use assay_testkit::waits_for_lock;
use serde_json::json;
use uuid::Uuid;

use super::{counts, steps};
use crate::{
    changes::reports,
    world::{World, fields, reason},
};

#[tokio::test]
async fn merged_launches_are_one_execution() -> Result<()> {
    for are_stored in [false, true] {
        let world = World::new().await?;
        let (one, other) = (world.start_launch("Part").await?, world.start_launch("Part").await?);
        for (launch, name) in [(&one, "one"), (&other, "two")] {
            let test = launch.test(name, "PASSED").await?;
            launch.file(&test, "picture", "a picture").await?;
            launch.finish().await?;
        }
        if are_stored {
            world.close_launches().await?;
            roll_up(&world.db).await?;
        }
        let merged = world.merge(&[&one.id, &other.id]).await?;
        world.close_launches().await?;

        let execution = world.execution(&merged).await?;
        assert_eq!(execution.test_set_name, "Merged");
        assert_eq!(counts(&execution), [2, 0, 0, 2, 0]);
        let links = &steps(&world, &execution, "two").await?.last().unwrap().screenshots.clone();
        assert_eq!(links.len(), 1, "{links:?}");
        let withdrawn = "select count(*) from execution
             where archived and (status = 'Canceled' or expired_at is not null)";
        assert_eq!(world.count(withdrawn).await?, 2);
        roll_up(&world.db).await?;
        assert_eq!(
            world.count("select sum(runs) from case_day").await?,
            2,
            "each test counts once"
        );
        assert_eq!(world.differences().await?, 0);
        world.forget_requests().await?;
        assert_eq!(world.count("select count(*) from launch_request").await?, 0);
        let again = world.merge(&[&one.id, &other.id]).await.unwrap_err();
        assert_eq!(reason(&again), "launch_ended");
    }
    Ok(())
}

/// Reports a launch with these tests and their statuses. Returns its id and that of its execution.
async fn report(world: &World, tests: &[(&str, &str)]) -> Result<(String, String)> {
    let launch = world.start_launch("Merged").await?;
    for (name, status) in tests {
        launch.test(name, status).await?;
    }
    let execution = launch.finish().await?;
    world.close_launches().await?;
    Ok((launch.id, execution))
}

#[tokio::test]
async fn results_of_merged_launches_count_once_in_the_history_of_their_tests() -> Result<()> {
    let world = World::new().await?;
    report(&world, &[("pays", "PASSED"), ("ships", "PASSED")]).await?;
    let (one, _) = report(&world, &[("pays", "FAILED")]).await?;
    let (other, _) = report(&world, &[("ships", "PASSED")]).await?;
    let merged = world.merge(&[&one, &other]).await?;
    world.close_launches().await?;

    let merged = world.execution(&merged).await?;
    let failed = reports(&world, &merged).await?;
    let failed = failed.iter().find(|entry| entry.test_case_identifier == "pays").unwrap();
    assert_eq!(failed.change(), ResultChange::New, "{}", failed.change_reason);
    let (_, later) = report(&world, &[("pays", "FAILED")]).await?;
    let still = reports(&world, &world.execution(&later).await?).await?.remove(0);
    assert_eq!(still.change_reason, "fails for the 2nd time in a row");
    assert_eq!(world.differences().await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_merge_locks_executions_before_launches() -> Result<()> {
    let world = World::new().await?;
    let (one, _) = report(&world, &[("pays", "PASSED")]).await?;
    let (other, _) = report(&world, &[("ships", "PASSED")]).await?;
    let id = Uuid::now_v7().to_string();
    world.start_launch_as(json!({ "name": "Merged", "uuid": id })).await?;
    let mut changing = assay_database::begin(&world.db).await?;
    let latest = "select from execution order by id desc limit 1 for update";
    sqlx::query(latest).execute(&mut *changing).await?;

    let sources = [one.as_str(), other.as_str()];
    let mut merged = pin!(world.merge_as(Some(id.as_str()), &sources));
    waits_for_lock(&world.db, merged.as_mut()).await?;
    let free = "select count(*) from (select id from launch for update skip locked) as free";
    let free: i64 = sqlx::query_scalar(free).fetch_one(&mut *changing).await?;
    assert_eq!(free, 3, "the change locks its launch next");
    changing.commit().await?;
    merged.await?;
    Ok(())
}

#[tokio::test]
async fn a_launch_is_not_merged_into_itself() -> Result<()> {
    let world = World::new().await?;
    let launch = world.start_launch("Nightly").await?;
    launch.test("pays", "PASSED").await?;
    let id = launch.finish().await?;
    let refused = world.merge_as(Some(&launch.id), &[&launch.id]).await.unwrap_err();
    assert_eq!(fields(&refused), ["uuid"]);
    world.close_launches().await?;
    assert_eq!(counts(&world.execution(&id).await?), [1, 0, 0, 1, 0]);
    Ok(())
}

#[tokio::test]
async fn the_sums_of_a_merge_do_not_wait_for_those_of_other_customers() -> Result<()> {
    let world = World::new().await?;
    let (one, other) = (world.start_launch("Part").await?, world.start_launch("Part").await?);
    for launch in [&one, &other] {
        launch.test("pays", "PASSED").await?;
        launch.finish().await?;
    }
    world.close_launches().await?;
    roll_up(&world.db).await?;
    let mut adding = assay_database::begin(&world.db).await?;
    sqlx::query(
        "insert into case_day
         select (jsonb_populate_record(c, jsonb_build_object('customer_id', gen_random_uuid()))).*
         from case_day c",
    )
    .execute(&mut *adding)
    .await?;

    world.merge(&[&one.id, &other.id]).await?;
    assert_eq!(world.count("select count(*) from case_day").await?, 0);
    adding.rollback().await?;
    Ok(())
}

#[tokio::test]
async fn attributes_become_tags_and_the_origin_also_after_the_start() -> Result<()> {
    let world = World::new().await?;
    let body = json!({ "name": "Nightly", "description": "All of it", "mode": "DEBUG",
        "attributes": [{ "key": "branch", "value": "main" }] });
    let launch = world.start_launch_as(body).await?;
    let reported = world.launch(&launch.id);
    reported.test("pays", "PASSED").await?;
    let update = async |body: serde_json::Value| {
        let body = body.to_string().into();
        let request = UpdateLaunchRequest { launch_id: launch.id.clone(), body };
        world.launch_service().update_launch(world.user.call(request)).await
    };
    update(
        json!({ "description": "Most of it", "attributes": [{ "key": "commit", "value": "c1" }] }),
    )
    .await?;
    let id = reported.finish().await?;
    let execution = world.execution(&id).await?;
    assert_eq!(execution.tags, "debug, commit:c1");
    assert_eq!(
        (execution.branch.as_deref(), execution.commit.as_deref()),
        (Some("main"), Some("c1"))
    );
    world.close_launches().await?;
    update(json!({ "attributes": [{ "key": "branch", "value": "other" }, { "value": "slow" }] }))
        .await?;

    let execution = world.execution(&id).await?;
    assert_eq!(execution.tags, "debug, branch:other, slow");
    assert_eq!(
        execution.branch.as_deref(),
        Some("main"),
        "its results are compared on this branch"
    );
    let logs = "select count(*) from artifact where name = 'launch.log' and size = 10";
    assert_eq!(world.count(logs).await?, 1, "the description");
    assert_eq!(world.differences().await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_launch_is_compared_with_the_branch_that_it_names_after_its_start() -> Result<()> {
    let world = World::new().await?;
    let report = async |status: &str| {
        let launch = world.start_launch("Nightly").await?;
        launch.test("pays", status).await?;
        let body = json!({ "attributes": [{ "key": "branch", "value": "feature" }] });
        let body = body.to_string().into();
        let request = UpdateLaunchRequest { launch_id: launch.id.clone(), body };
        world.launch_service().update_launch(world.user.call(request)).await?;
        let id = launch.finish().await?;
        world.close_launches().await?;
        anyhow::Ok(world.execution(&id).await?)
    };
    report("PASSED").await?;
    let failed = reports(&world, &report("FAILED").await?).await?.remove(0);
    assert_eq!(failed.change_reason, "passed in all of its last 1 run");
    let of_default = "select count(*) from execution where is_of_default_branch";
    assert_eq!(world.count(of_default).await?, 0, "monitors of the default branch leave it alone");
    assert_eq!(world.differences().await?, 0);
    Ok(())
}

#[tokio::test]
async fn attributes_name_the_subject_and_the_environment() -> Result<()> {
    let world = World::new().await?;
    world.select_environment("firefox", "secret").await?;
    world.select_subject("secret").await?;
    let names = "select (select identifier from subject), (select name from environment)";
    let (subject, environment): (String, String) =
        sqlx::query_as(names).fetch_one(world.catalog_db()).await?;
    for (attributes, found) in [
        (
            json!([{ "key": "version", "value": subject }, { "key": "env", "value": environment }]),
            true,
        ),
        (
            json!([{ "key": "build", "value": "unknown" }, { "key": "env", "value": "unknown" }]),
            false,
        ),
    ] {
        let body = json!({ "name": format!("Nightly {found}"), "attributes": attributes });
        let launch = world.start_launch_as(body).await?;
        let id = world.launch(&launch.id).finish().await?;
        let execution = world.execution(&id).await?;
        assert_eq!(execution.software_version.as_deref() == Some(&subject), found);
        assert_eq!(execution.environment_name.as_deref() == Some(&environment), found);
    }
    Ok(())
}

#[tokio::test]
async fn tests_that_are_run_again_are_attempts_until_their_results_are_stored() -> Result<()> {
    let world = World::new().await?;
    let launch = world.start_launch("Nightly").await?;
    launch.test("pays", "PASSED").await?;
    launch.test("ships", "FAILED").await?;
    let id = launch.finish().await?;

    let other = json!({ "name": "Another", "rerun": true });
    assert_ne!(world.start_launch_as(other).await?.id, launch.id);
    let last = json!({ "name": "Nightly", "rerun": true });
    assert_eq!(world.start_launch_as(last).await?.id, launch.id);
    let body = json!({ "name": "Nightly", "rerunOf": launch.id });
    assert_eq!(world.start_launch_as(body.clone()).await?.id, launch.id);
    launch.test("ships", "PASSED").await?;
    assert_eq!(launch.finish().await?, id);
    world.close_launches().await?;

    let execution = world.execution(&id).await?;
    assert_eq!(counts(&execution), [2, 0, 0, 2, 0]);
    assert_eq!(execution.result(), TestResult::Passed);
    let ships = execution.test_reports.iter().find(|report| report.test_case_identifier == "ships");
    assert!(ships.unwrap().is_flaky);
    let later = world.start_launch_as(body).await?;
    assert_ne!(later.id, launch.id);
    Ok(())
}

#[tokio::test]
async fn the_issue_of_an_item_is_the_comment_of_its_report() -> Result<()> {
    let world = World::new().await?;
    let launch = world.start_launch("Nightly").await?;
    let test = launch.item(None, "ships", json!({})).await?;
    let issue = json!({ "issueType": "pb001", "comment": "The carrier is down" });
    launch.finish_item_with(&test, json!({ "status": "FAILED", "issue": issue })).await?;
    let id = launch.finish().await?;
    world.close_launches().await?;

    let report = world.execution(&id).await?.test_reports.remove(0);
    assert_eq!(report.comment.as_deref(), Some("The carrier is down"));
    assert_eq!(world.differences().await?, 0);
    Ok(())
}
