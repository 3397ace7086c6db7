//! Leases that expire or are released.

use anyhow::Result;
use assay_ledger::execution::store;
use assay_proto::{ExecutionStatus, ReportStatus, TestResult, execution::Lease};
use serde_json::json;
use tonic::Code;

use super::{expire_leases, reconcile_after_outage};
use crate::world::{Engine, World, instance, now, reason};

/// Asserts that all requests for a lease fail with `lease_lost`.
async fn assert_lost(engine: &Engine, lease: &Lease) {
    let responses = [
        engine.renew(&lease.id).await.map(drop),
        engine.report(&lease.id, json!([instance(1, "Passed")])).await.map(drop),
        engine.complete(&lease.id, false).await,
        engine.release(&lease.id).await,
    ];
    for response in responses {
        let refused = response.expect_err("a lost lease");
        assert_eq!(refused.code(), Code::FailedPrecondition, "{refused:?}");
        assert_eq!(reason(&refused), "lease_lost");
    }
}

#[tokio::test]
async fn an_expired_lease_is_lost_and_another_engine_runs_the_rest() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 3)]).await?;
    let execution = world.dispatch().await?;
    let (late, other) = (world.engine(), world.engine());
    let lost = late.lease_one().await?;
    late.report(&lost.id, json!([instance(2, "Passed")])).await?;

    expire_leases(&world).await?;
    assert_lost(&late, &lost).await;
    let again = other.lease_one().await?;
    assert_lost(&late, &lost).await;

    assert_eq!(again.schedule_id, lost.schedule_id);
    assert_eq!(again.instance_numbers, [1, 3], "reported instances are not run again");
    other.report(&again.id, json!([instance(1, "Passed"), instance(3, "Passed")])).await?;
    assert_lost(&late, &lost).await;
    other.complete(&again.id, false).await?;
    let done = world.execution(&execution.id).await?;
    assert_eq!((done.status(), done.result()), (ExecutionStatus::Completed, TestResult::Passed));
    assert_eq!(world.count("select count(*) from instance").await?, 3);
    Ok(())
}

#[tokio::test]
async fn heartbeats_extend_a_lease() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    world.dispatch().await?;
    let engine = world.engine();
    let lease = engine.lease_one().await?;
    world.change("update lease set expires_at = now() + interval '5 seconds'").await?;
    let renewed = engine.renew(&lease.id).await?;
    assert!(renewed.r#continue && renewed.expires_at > lease.expires_at);
    world.reconcile().await?;
    engine.report(&lease.id, json!([instance(1, "Passed")])).await?;
    Ok(())
}

#[tokio::test]
async fn an_outage_loses_no_leases() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("renewed", 1), ("reported", 1), ("killed", 1)]).await?;
    let execution = world.dispatch().await?;
    let engine = world.engine();
    let leases = engine.lease(now("", 3)).await?;
    let [renewed, reported, killed] = &leases[..] else { panic!("{leases:?}") };
    world.change("update lease set expires_at = now() - interval '1 hour'").await?;

    reconcile_after_outage(&world).await?;

    assert!(engine.lease(now("", 3)).await?.is_empty(), "the work is not queued again");
    assert!(engine.renew(&renewed.id).await?.r#continue);
    engine.report(&reported.id, json!([instance(1, "Passed")])).await?;
    engine.complete(&reported.id, false).await?;
    world.reconcile().await?;
    engine.report(&renewed.id, json!([instance(1, "Passed")])).await?;
    assert_lost(&engine, killed).await;
    let lost = world.count("select count(*) from schedule where lost_leases > 0").await?;
    assert_eq!(lost, 1, "an engine that does not return has lost its lease");
    engine.report(&engine.lease_one().await?.id, json!([instance(1, "Passed")])).await?;
    let done = world.execution(&execution.id).await?;
    assert_eq!((done.status(), done.result()), (ExecutionStatus::Completed, TestResult::Passed));
    Ok(())
}

#[tokio::test]
async fn work_that_loses_three_leases_ends_as_an_engine_failure() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("bad", 2), ("good", 1)]).await?;
    let execution = world.dispatch().await?;
    let engine = world.engine();
    for engines in 1..=3 {
        let bad = engine.lease_one().await?;
        assert_eq!(
            bad.test_case.as_ref().unwrap().identifier,
            "bad",
            "a lost schedule keeps its position"
        );
        expire_leases(&world).await?;
        let report = &world.execution(&execution.id).await?.test_reports[0];
        let expected = match engines {
            3 => ReportStatus::EngineExecutionFailure,
            _ => ReportStatus::NotExecuted,
        };
        assert_eq!(report.status(), expected);
    }
    let good = engine.lease_one().await?;
    assert_eq!(good.test_case.as_ref().unwrap().identifier, "good");
    engine.report(&good.id, json!([instance(1, "Passed")])).await?;

    let done = world.execution(&execution.id).await?;
    assert_eq!((done.status(), done.result()), (ExecutionStatus::Completed, TestResult::Error));
    assert!(done.test_reports[0].comment.as_deref().is_some_and(|c| c.contains("3 engines")));
    Ok(())
}

#[tokio::test]
async fn released_work_is_available_immediately() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 2)]).await?;
    world.dispatch().await?;
    let engine = world.engine();
    for _ in 0..5 {
        let lease = engine.lease_one().await?;
        engine.release(&lease.id).await?;
        engine.release(&lease.id).await?;
        let refused = engine.renew(&lease.id).await.unwrap_err();
        assert_eq!(reason(&refused), "lease_lost");
    }
    assert_eq!(world.count("select count(*) from schedule where lost_leases = 0").await?, 1);
    assert_eq!(engine.lease_one().await?.instance_numbers, [1, 2]);
    Ok(())
}

#[tokio::test]
async fn many_lost_leases_of_one_execution_do_not_delay_others() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1), ("c", 1)]).await?;
    let executions = [world.dispatch().await?.id, world.dispatch().await?.id];
    assert_eq!(world.engine().lease(now("", 4)).await?.len(), 4);
    world.change("update lease set expires_at = now()").await?;
    sqlx::query(
        "update lease set expires_at = now() - interval '1 minute' where execution_id = $1::uuid",
    )
    .bind(&executions[0])
    .execute(&world.db)
    .await?;

    let unsettled = store::unsettled(&world.db, 3).await?;

    let mut ids: Vec<_> = unsettled.into_iter().map(|(_, id)| id.to_string()).collect();
    ids.sort_unstable();
    assert_eq!(ids, executions);
    Ok(())
}
