//! Assignment of queued work to engines.

use anyhow::Result;
use assay_proto::{
    ExecutionStatus, ReportStatus, TestResult, catalog::TestSetInput, execution::LeaseInput,
};
use serde_json::json;
use tonic::{Code, Status};

use super::outcomes;
use crate::world::{World, fields, instance, now};

#[tokio::test]
async fn lease_requests_are_validated() -> Result<()> {
    let world = World::new().await?;
    let engine = world.engine();
    let mut request = now("g\0", 0);
    request.engine = Some(" ".into());
    request.wait_in_sec = Some(31);
    let refused = engine.lease(request).await.unwrap_err();
    assert_eq!(fields(&refused), ["TargetGroup", "Engine", "MaxSchedules", "WaitInSec"]);
    let refused = engine.lease(now("", 101)).await.unwrap_err();
    assert_eq!(fields(&refused), ["MaxSchedules"]);
    Ok(())
}

#[tokio::test]
async fn engines_get_only_work_of_their_customer() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    world.dispatch().await?;
    let stranger = world.engine_of(&world.stranger().await);
    assert!(stranger.lease(now("", 9)).await?.is_empty());
    let lease = world.engine().lease_one().await?;
    for id in [lease.id.as_str(), "0"] {
        let responses: [Result<(), Status>; 4] = [
            stranger.renew(id).await.map(drop),
            stranger.report(id, json!([instance(1, "Passed")])).await.map(drop),
            stranger.complete(id, false).await,
            stranger.release(id).await,
        ];
        assert!(
            responses
                .iter()
                .all(|response| response.as_ref().unwrap_err().code() == Code::NotFound)
        );
    }
    Ok(())
}

#[tokio::test]
async fn unreadable_work_ends_as_an_engine_failure_and_other_work_continues() -> Result<()> {
    assay_testkit::expect_failures();
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let broken = world.select_environment("lab", "secret").await?;
    let first = world.dispatch().await?;
    world.corrupt_password(&broken).await?;
    world.select_environment("lab", "secret").await?;
    let second = world.dispatch().await?;

    let leases = world.engine().lease(now("lab", 5)).await?;

    let [lease] = &leases[..] else { panic!("{leases:?}") };
    assert_eq!(lease.execution_id, second.id);
    let unreadable = world.execution(&first.id).await?;
    let failed = (ReportStatus::EngineExecutionFailure, TestResult::Error);
    assert_eq!(outcomes(&unreadable), [failed]);
    assert_eq!(unreadable.status(), ExecutionStatus::Completed);
    assert!(
        unreadable.test_reports[0].comment.as_deref().is_some_and(|c| c.starts_with("Not run"))
    );
    // If only unreadable work is queued, engines get no leases rather than an error.
    world.corrupt_password(&lease.environment.as_ref().unwrap().id).await?;
    world.dispatch().await?;
    assert!(world.engine().lease(now("lab", 1)).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn work_of_a_deleted_environment_ends_as_an_engine_failure() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let environment = world.select_environment("lab", "secret").await?;
    let execution = world.dispatch().await?;
    world.delete_environment(&environment).await?;

    assert!(world.engine().lease(now("lab", 1)).await?.is_empty());

    let failed = (ReportStatus::EngineExecutionFailure, TestResult::Error);
    assert_eq!(outcomes(&world.execution(&execution.id).await?), [failed]);
    Ok(())
}

#[tokio::test]
async fn work_is_assigned_by_priority() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1)]).await?;
    let mut dispatched = Vec::new();
    for priority in ["Low", "whenever", "high"] {
        let changes = TestSetInput { priority: Some(priority.to_owned()), ..Default::default() };
        world.change_set(changes, &["Priority"]).await?;
        dispatched.insert(0, world.dispatch().await?.id);
    }
    let engine = world.engine();
    let mut leased = vec![engine.lease_one().await?];
    leased.extend(engine.lease(now("", 5)).await?);
    let order: Vec<_> = leased.iter().map(|lease| lease.execution_id.clone()).collect();
    assert_eq!(
        order,
        dispatched.iter().flat_map(|id| [id.clone(), id.clone()]).collect::<Vec<_>>()
    );
    Ok(())
}

#[tokio::test]
async fn engines_can_select_subjects_by_their_need_of_a_public_ip() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let mut dispatched = Vec::new();
    for needs_public_ip in [false, true, true] {
        let id = world.dispatch().await?.id;
        sqlx::query("update schedule set needs_public_ip = $2 where execution_id = $1::uuid")
            .bind(&id)
            .bind(needs_public_ip)
            .execute(&world.db)
            .await?;
        dispatched.push(id);
    }
    let lease = async |needs_public_ip: Option<bool>| {
        let request = LeaseInput { needs_public_ip, ..now("", 1) };
        let leases = world.engine().lease(request).await?;
        Ok::<_, Status>(leases.into_iter().next().map(|lease| lease.execution_id))
    };
    assert_eq!(lease(Some(true)).await?, Some(dispatched[1].clone()));
    assert_eq!(lease(Some(false)).await?, Some(dispatched[0].clone()));
    assert_eq!(lease(Some(false)).await?, None);
    assert_eq!(lease(None).await?, Some(dispatched[2].clone()));
    Ok(())
}

#[tokio::test]
async fn environments_in_use_do_not_hide_one_that_is_free() -> Result<()> {
    let world = World::new().await?;
    let names: Vec<String> = (0..120).map(|nr| format!("case {nr}")).collect();
    let cases: Vec<(&str, i32)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    world.include(&cases).await?;
    world.select_environment("pads", "secret").await?;
    world.dispatch().await?;
    // Sixty exclusive environments, each with two tests.
    world
        .change(
            "update schedule set target_group = e'pads\\x1e' || md5((nr % 60)::text)::uuid::text
             from (select id as numbered, row_number() over (order by id) as nr from schedule)
                 as queued
             where id = numbered",
        )
        .await?;
    let engine = world.engine();
    let leases = engine.lease(now("pads", 100)).await?;
    assert_eq!(leases.len(), 60, "one test at a time in each environment");
    assert!(engine.lease(now("pads", 1)).await?.is_empty());

    // The last environment is free: all others have older work.
    engine.complete(&leases[59].id, true).await?;

    assert_eq!(engine.lease(now("pads", 1)).await?.len(), 1);
    Ok(())
}
