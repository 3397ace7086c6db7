//! Leases whose engines live and report nothing, and heartbeats that wait.

use std::time::{Duration, Instant};

use anyhow::Result;
use assay_proto::{ExecutionStatus, ReportStatus, TestResult};
use assay_testkit::eventually;
use serde_json::json;

use super::{outcomes, reconcile_after_outage};
use crate::world::{World, fields, instance, reason};

/// Makes leases so old that an instance should have been reported.
const AGE: &str = "update lease set times_out_at = now() - interval '1 second'";

#[tokio::test]
async fn an_engine_that_renews_its_lease_and_reports_nothing_times_out() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("hangs", 2), ("other", 1)]).await?;
    let execution = world.dispatch().await?;
    let engine = world.engine();
    let lease = engine.lease_one().await?;
    assert!((lease.maximum_duration_in_min - 360.0).abs() < f64::EPSILON);
    world.change(AGE).await?;
    assert!(engine.renew(&lease.id).await?.r#continue);

    world.reconcile().await?;

    assert!(!engine.renew(&lease.id).await?.r#continue);
    let ended = world.execution(&execution.id).await?;
    let failed = (ReportStatus::EngineExecutionFailure, TestResult::Error);
    let queued = (ReportStatus::NotExecuted, TestResult::NotExecuted);
    assert_eq!(outcomes(&ended), [failed, queued]);
    let comment = ended.test_reports[0].comment.clone().unwrap_or_default();
    assert!(comment.starts_with("Timed out: ") && comment.contains("360 minutes"), "{comment}");
    let late = engine.report(&lease.id, json!([instance(1, "Passed")])).await.unwrap_err();
    assert_eq!(reason(&late), "report_ended");
    engine.complete(&lease.id, false).await?;
    let other = engine.lease_one().await?;
    engine.report(&other.id, json!([instance(1, "Passed")])).await?;
    let done = world.execution(&execution.id).await?;
    assert_eq!((done.status(), done.result()), (ExecutionStatus::Completed, TestResult::Error));
    assert_eq!(world.differences().await?, 0);
    Ok(())
}

#[tokio::test]
async fn an_engine_that_reports_one_instance_after_the_other_does_not_time_out() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 2)]).await?;
    world.dispatch().await?;
    world.change("update schedule set maximum_duration_in_min = 5").await?;
    let engine = world.engine();
    let lease = engine.lease_one().await?;
    assert!((lease.maximum_duration_in_min - 5.0).abs() < f64::EPSILON);
    world.change(AGE).await?;
    engine.report(&lease.id, json!([instance(1, "Passed")])).await?;

    world.reconcile().await?;

    assert!(engine.renew(&lease.id).await?.r#continue);
    let prolonged = "select count(*) from lease
        where times_out_at between now() + interval '5 minutes' and now() + interval '7 minutes'";
    assert_eq!(world.count(prolonged).await?, 1, "five minutes, and one to stop the test");
    engine.report(&lease.id, json!([instance(2, "Passed")])).await?;
    Ok(())
}

#[tokio::test]
async fn neither_the_clock_of_a_replica_nor_a_repeated_result_keeps_a_test_from_timing_out()
-> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 2)]).await?;
    world.dispatch().await?;
    let engine = world.engine();
    let lease = engine.lease_one().await?;
    engine.report(&lease.id, json!([instance(1, "Passed")])).await?;
    // The replica that has stored the instance had the year 2039.
    world.change("update instance set id = '01ffffff-ffff-7fff-bfff-ffffffffffff'").await?;
    world.change(AGE).await?;
    engine.report(&lease.id, json!([instance(1, "Passed")])).await?;

    world.reconcile().await?;

    assert!(!engine.renew(&lease.id).await?.r#continue);
    Ok(())
}

#[tokio::test]
async fn no_test_times_out_during_an_outage() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    world.dispatch().await?;
    let engine = world.engine();
    let lease = engine.lease_one().await?;
    world.change(AGE).await?;

    reconcile_after_outage(&world).await?;

    assert!(engine.renew(&lease.id).await?.r#continue);
    engine.report(&lease.id, json!([instance(1, "Passed")])).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_heartbeat_returns_as_soon_as_its_work_is_over() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1)]).await?;
    world.stop_on_failure().await?;
    for end in ["cancellation", "failure", "failure of an engine"] {
        let execution = world.dispatch().await?;
        let engine = world.engine();
        let [first, second] = [engine.lease_one().await?, engine.lease_one().await?];
        let waits = engine.renew_within(&second.id, 30);
        let ends = async {
            let waiting = async || (world.queue.heartbeats() == 1).then_some(());
            eventually("a waiting heartbeat", waiting).await;
            let begun = Instant::now();
            match end {
                "cancellation" => world.cancel(&execution.id).await?,
                "failure" => {
                    engine.report(&first.id, json!([instance(1, "Failed")])).await?;
                }
                _ => engine.complete(&first.id, true).await?,
            }
            anyhow::Ok(begun)
        };
        let waits = async { anyhow::Ok(waits.await?) };
        let (state, begun) = tokio::try_join!(waits, ends)?;
        assert!(!state.r#continue, "{end}");
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(2), "{end}: {took:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_renews_its_lease_before_and_after_its_wait() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    world.dispatch().await?;
    let engine = world.engine();
    let lease = engine.lease_one().await?;
    world.change("update lease set expires_at = now() + interval '500 milliseconds'").await?;
    let begun = Instant::now();
    let state = engine.renew_within(&lease.id, 1).await?;
    assert!(state.r#continue && begun.elapsed() >= Duration::from_secs(1));
    assert!(state.expires_at > lease.expires_at);
    let refused = engine.renew_within(&lease.id, 31).await.unwrap_err();
    assert_eq!(fields(&refused), ["WaitInSec"]);
    Ok(())
}
