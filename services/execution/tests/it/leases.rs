//! Leases: engines take work off the queue and report its results.

mod assignment;
mod labels;
mod losses;
mod projects;
mod time_outs;

use anyhow::Result;
use assay_execution::{Reconciler, TimeLimits};
use assay_ledger::lease::uptime::Uptime;
use assay_proto::{
    ExecutionStatus, ReportStatus, TestResult,
    execution::{Execution, TestReport},
};
use serde_json::{Value, json};

use crate::world::{World, fields, instance, now, reason};

const LIMITS: TimeLimits = TimeLimits {
    lease_seconds: 60,
    lease_losses: 1,
    test_minutes: 360,
    execution_hours: 168,
    grace_seconds: 900,
    queue_seconds: 300,
};

/// Runs the reconciler once, as soon as an outage is over.
async fn reconcile_after_outage(world: &World) -> Result<()> {
    let reconciler = Reconciler::new(&world.db, &world.queue, LIMITS);
    Ok(reconciler.round_within(&mut Uptime::new(LIMITS.lease())).await?)
}

/// Lets all leases expire, and runs the reconciler.
async fn expire_leases(world: &World) -> Result<()> {
    world.change("update lease set expires_at = now() where ended_at is null").await?;
    world.reconcile().await
}

fn outcomes(execution: &Execution) -> Vec<(ReportStatus, TestResult)> {
    execution.test_reports.iter().map(|report| (report.status(), report.result())).collect()
}

#[tokio::test]
async fn an_engine_runs_an_execution_from_the_queue_to_its_end() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 2), ("b", 1)]).await?;
    let engine = world.engine();

    let execution = world.dispatch().await?;
    assert_eq!(execution.status(), ExecutionStatus::Queued);
    let leases = engine.lease(now("", 5)).await?;
    let [a, b] = &leases[..] else { panic!("{leases:?}") };
    assert_eq!((&a.instance_numbers, &b.instance_numbers), (&vec![1, 2], &vec![1]));
    let running = world.execution(&execution.id).await?;
    assert_eq!(running.status(), ExecutionStatus::Running);
    assert_eq!(outcomes(&running), [(ReportStatus::Running, TestResult::NotExecuted); 2]);

    let entries = engine.report(&a.id, json!([instance(2, "Passed")])).await?;
    assert_eq!((entries.len(), entries[0].instance_nr), (1, 2));
    assert!(engine.renew(&a.id).await?.r#continue);
    engine.report(&a.id, json!([instance(1, "Passed")])).await?;
    engine.report(&b.id, json!([instance(1, "Failed")])).await?;

    let done = world.execution(&execution.id).await?;
    assert_eq!((done.status(), done.result()), (ExecutionStatus::Completed, TestResult::Failed));
    let [passed, failed] = &outcomes(&done)[..] else { panic!("{done:?}") };
    assert_eq!(*passed, (ReportStatus::InReview, TestResult::Passed));
    assert_eq!(*failed, (ReportStatus::InReview, TestResult::Failed));
    for lease in &leases {
        engine.complete(&lease.id, false).await?;
        engine.complete(&lease.id, false).await?;
    }
    assert_eq!(world.execution(&execution.id).await?, done);
    assert!(engine.lease(now("", 5)).await?.is_empty());
    let events: Vec<_> = world.events().await?.into_iter().map(|(subject, _)| subject).collect();
    assert_eq!(
        events,
        [
            "execution.requested",
            "execution.progressed",
            "execution.progressed",
            "test_report.finished",
            "execution.progressed",
            "test_report.finished",
            "execution.completed",
        ]
    );
    Ok(())
}

#[tokio::test]
async fn a_lease_contains_secrets_and_the_database_does_not() -> Result<()> {
    const CANARY: &str = "canary-5d1e";
    let world = World::new().await?;
    world.include_automated("DOOR-1", CANARY).await?;
    let subject = world.select_subject(CANARY).await?;
    let environment = world.select_environment("pads", CANARY).await?;
    let execution = world.dispatch().await?;
    world.rename_subject(&subject).await?;
    let engine = world.engine();
    assert!(engine.lease(now("", 1)).await?.is_empty(), "the work belongs to another target group");

    let lease = engine.lease(now("pads", 1)).await?.remove(0);

    let report = &execution.test_reports[0];
    let shown: Vec<_> = report.variables.iter().flat_map(|list| &list.items).collect();
    assert_eq!((shown[0].name.as_str(), shown[0].content.as_str()), ("PIN", "********"));
    assert_eq!((&lease.execution_id, &lease.test_report_id), (&execution.id, &report.id));
    assert_eq!(lease.project_id, world.project);
    assert!(lease.expires_at > execution.request_time);
    let case = lease.test_case.unwrap();
    assert_eq!((case.identifier.as_str(), case.name.as_str()), ("DOOR-1", "Test of DOOR-1"));
    let plan = lease.test_plan.unwrap();
    assert_eq!((&plan.id, plan.revision), (&report.test_plan_id, 1));
    assert_eq!(plan.automation_steps[0].test_input, "Knock");
    assert_eq!(plan.variables[0].content, CANARY);
    let subject = lease.subject.unwrap();
    assert_eq!((subject.identifier.as_str(), subject.name.as_str()), ("1.0", "Web shop"));
    assert_eq!(subject.variables[0].content, CANARY);
    let lab = lease.environment.unwrap();
    assert_eq!((&lab.id, lab.name.as_str(), lab.password.as_str()), (&environment, "Lab", CANARY));

    engine.report(&lease.id, json!([instance(1, "Passed")])).await?;
    let tables: Vec<String> =
        sqlx::query_scalar("select tablename::text from pg_tables where schemaname = 'public'")
            .fetch_all(&world.db)
            .await?;
    for table in tables {
        let rows = format!("select coalesce(string_agg(row::text, ' '), '') from \"{table}\" row");
        let rows = sqlx::query_scalar(sqlx::AssertSqlSafe(rows));
        let dump: String = rows.fetch_one(&world.db).await?;
        assert!(!dump.contains(CANARY), "table {table} contains the secret");
    }
    let disclosed = world.disclosed_secrets().await?;
    assert_eq!(disclosed, ["Environment", "Subject", "TestPlan"]);
    Ok(())
}

/// Completes a lease with one of two instances, and returns the report.
async fn completed(stops: bool, failure: bool) -> Result<TestReport> {
    let world = World::new().await?;
    world.include(&[("a", 2), ("b", 1)]).await?;
    if stops {
        world.stop_on_failure().await?;
    }
    let execution = world.dispatch().await?;
    let engine = world.engine();
    let leases = engine.lease(now("", 2)).await?;
    engine.report(&leases[0].id, json!([instance(1, "Passed")])).await?;
    let result = if stops { "Failed" } else { "Passed" };
    engine.report(&leases[1].id, json!([instance(1, result)])).await?;
    assert_eq!(engine.renew(&leases[0].id).await?.r#continue, !stops);
    engine.complete(&leases[0].id, failure).await?;
    let done = world.execution(&execution.id).await?;
    assert_eq!(done.status(), ExecutionStatus::Completed);
    Ok(done.test_reports[0].clone())
}

#[tokio::test]
async fn completing_a_lease_ends_missing_instances() -> Result<()> {
    let aborted = completed(false, false).await?;
    assert_eq!((aborted.status(), aborted.result()), (ReportStatus::InReview, TestResult::Aborted));
    let failed = completed(false, true).await?;
    let expected = (ReportStatus::EngineExecutionFailure, TestResult::Error);
    assert_eq!((failed.status(), failed.result()), expected);
    assert_eq!(failed.comment.as_deref(), Some("The browser did not start"));
    let canceled = completed(true, false).await?;
    let expected = (ReportStatus::Canceled, TestResult::Canceled);
    assert_eq!((canceled.status(), canceled.result()), expected);
    Ok(())
}

#[tokio::test]
async fn a_failure_dequeues_the_other_schedules() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 2), ("c", 1), ("d", 1)]).await?;
    world.stop_on_failure().await?;
    let execution = world.dispatch().await?;
    let engine = world.engine();
    let leases = engine.lease(now("", 3)).await?;

    engine.report(&leases[0].id, json!([instance(1, "Failed")])).await?;

    assert!(engine.lease(now("", 9)).await?.is_empty());
    for lease in &leases[1..] {
        assert!(!engine.renew(&lease.id).await?.r#continue);
    }
    // One engine still reports a result, another one never completes its lease.
    engine.report(&leases[1].id, json!([instance(1, "Passed")])).await?;
    engine.complete(&leases[1].id, false).await?;
    assert_eq!(world.execution(&execution.id).await?.status(), ExecutionStatus::Running);
    expire_leases(&world).await?;

    let done = world.execution(&execution.id).await?;
    assert_eq!(done.status(), ExecutionStatus::Completed);
    let canceled = (ReportStatus::Canceled, TestResult::Canceled);
    let failed = (ReportStatus::InReview, TestResult::Failed);
    assert_eq!(outcomes(&done), [failed, canceled, canceled, canceled]);
    Ok(())
}

#[tokio::test]
async fn heartbeats_report_the_end_of_an_execution() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 2), ("b", 1)]).await?;
    let engine = world.engine();
    for late in [false, true] {
        let execution = world.dispatch().await?;
        let lease = engine.lease_one().await?;
        engine.report(&lease.id, json!([instance(1, "Passed")])).await?;
        if late {
            world.change("update execution set deadline = now()").await?;
            world.reconcile().await?;
        } else {
            world.cancel(&execution.id).await?;
        }

        assert!(!engine.renew(&lease.id).await?.r#continue);
        let ended = world.execution(&execution.id).await?;
        let (status, result) = if late {
            (ExecutionStatus::Completed, TestResult::Aborted)
        } else {
            (ExecutionStatus::Canceled, TestResult::Canceled)
        };
        assert_eq!((ended.status(), ended.result()), (status, result));
        assert!(ended.test_reports.iter().all(|report| report.result() == result));
        let refused = engine.report(&lease.id, json!([instance(2, "Passed")])).await.unwrap_err();
        assert_eq!(reason(&refused), "execution_ended");
        let again = engine.report(&lease.id, json!([instance(1, "Passed")])).await?;
        assert_eq!(again.len(), 1, "a known result is accepted again");
        engine.complete(&lease.id, false).await?;
        engine.release(&lease.id).await?;
        assert_eq!(world.execution(&execution.id).await?, ended);
        assert!(engine.lease(now("", 9)).await?.is_empty());
    }
    Ok(())
}

#[tokio::test]
async fn results_of_engines_are_validated() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 2)]).await?;
    world.dispatch().await?;
    let engine = world.engine();
    let lease = engine.lease_one().await?;
    let invalid: [(Value, &[&str]); 4] = [
        (json!([instance(1, "Passed"), instance(3, "Passed")]), &["1/InstanceNr"]),
        (json!([{ "InstanceNr": 1 }]), &["0/Result"]),
        (
            json!([{ "Result": "Passed", "Steps": [{ "StepNr": 0, "Result": "Passed" }] }]),
            &["0/Steps/0/StepNr"],
        ),
        (json!({}), &[""]),
    ];
    for (instances, expected) in invalid {
        let refused = engine.report(&lease.id, instances).await.unwrap_err();
        assert_eq!(fields(&refused), expected);
    }
    assert_eq!(world.count("select count(*) from instance").await?, 0);
    engine.report(&lease.id, json!([instance(1, "Passed")])).await?;
    let again = engine.report(&lease.id, json!([instance(1, "Failed")])).await?;
    assert_eq!(again[0].result(), TestResult::Passed, "the first result counts");
    Ok(())
}
