//! Engines, their leases, and what they bring.

mod losses;

use anyhow::Result;
use assay_proto::{
    ExecutionStatus, ReportStatus, TestResult,
    execution::{Execution, TestReport},
};
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::world::{World, fields, instance, now, reason};

/// The lease runs out, and somebody looks after it.
async fn lose(world: &World) -> Result<()> {
    world.change("update lease set expires_at = now() where ended_at is null").await?;
    world.reconcile().await
}

fn outline(execution: &Execution) -> Vec<(ReportStatus, TestResult)> {
    execution.test_reports.iter().map(|report| (report.status(), report.result())).collect()
}

#[tokio::test]
async fn an_execution_goes_from_the_queue_to_its_end() -> Result<()> {
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
    assert_eq!(outline(&running), [(ReportStatus::Running, TestResult::NotExecuted); 2]);

    let entries = engine.report(&a.id, json!([instance(2, "Passed")])).await?;
    assert_eq!((entries.len(), entries[0].instance_nr), (1, 2));
    assert!(engine.renew(&a.id).await?.r#continue);
    engine.report(&a.id, json!([instance(1, "Passed")])).await?;
    engine.report(&b.id, json!([instance(1, "Failed")])).await?;

    let done = world.execution(&execution.id).await?;
    assert_eq!((done.status(), done.result()), (ExecutionStatus::Completed, TestResult::Failed));
    let [passed, failed] = &outline(&done)[..] else { panic!("{done:?}") };
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
            "execution.progressed",
            "test_report.finished",
            "execution.completed",
            "test_report.finished",
        ]
    );
    Ok(())
}

#[tokio::test]
async fn an_engine_gets_all_that_it_needs_and_the_database_no_secret() -> Result<()> {
    const CANARY: &str = "canary-5d1e";
    let world = World::new().await?;
    world.include_automated("DOOR-1", CANARY).await?;
    let subject = world.select_subject(CANARY).await?;
    let environment = world.select_environment("pads", CANARY).await?;
    let execution = world.dispatch().await?;
    world.rename_subject(&subject).await?;
    let engine = world.engine();
    assert!(engine.lease(now("", 1)).await?.is_empty(), "it is for engines at the pads");

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
        assert!(!dump.contains(CANARY), "{table} holds the secret");
    }
    let seen = world.secrets_seen().await?;
    assert_eq!(seen, ["Environment", "Subject", "TestPlan"]);
    Ok(())
}

/// The report of a case with two instances, of which one was reported, after its end.
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
async fn what_an_engine_does_not_report_is_aborted_or_its_failure_or_canceled() -> Result<()> {
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
async fn a_failure_takes_the_rest_off_the_queue() -> Result<()> {
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
    // One engine has a result after all, another one has none, and is not heard of again.
    engine.report(&leases[1].id, json!([instance(1, "Passed")])).await?;
    engine.complete(&leases[1].id, false).await?;
    assert_eq!(world.execution(&execution.id).await?.status(), ExecutionStatus::Running);
    lose(&world).await?;

    let done = world.execution(&execution.id).await?;
    assert_eq!(done.status(), ExecutionStatus::Completed);
    let canceled = (ReportStatus::Canceled, TestResult::Canceled);
    let failed = (ReportStatus::InReview, TestResult::Failed);
    assert_eq!(outline(&done), [failed, canceled, canceled, canceled]);
    Ok(())
}

#[tokio::test]
async fn engines_learn_that_their_work_is_not_wanted_any_more() -> Result<()> {
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
        let over = world.execution(&execution.id).await?;
        let (status, result) = if late {
            (ExecutionStatus::Completed, TestResult::Aborted)
        } else {
            (ExecutionStatus::Canceled, TestResult::Canceled)
        };
        assert_eq!((over.status(), over.result()), (status, result));
        assert!(over.test_reports.iter().all(|report| report.result() == result));
        let refused = engine.report(&lease.id, json!([instance(2, "Passed")])).await.unwrap_err();
        assert_eq!(reason(&refused), "execution_ended");
        let again = engine.report(&lease.id, json!([instance(1, "Passed")])).await?;
        assert_eq!(again.len(), 1, "what is known already is no news");
        engine.complete(&lease.id, false).await?;
        engine.release(&lease.id).await?;
        assert_eq!(world.execution(&execution.id).await?, over);
        assert!(engine.lease(now("", 9)).await?.is_empty());
    }
    Ok(())
}

#[tokio::test]
async fn instances_of_a_lease_are_checked_like_other_results() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 2)]).await?;
    world.dispatch().await?;
    let engine = world.engine();
    let lease = engine.lease_one().await?;
    let bad: [(Value, &[&str]); 4] = [
        (json!([instance(1, "Passed"), instance(3, "Passed")]), &["1/InstanceNr"]),
        (json!([{ "InstanceNr": 1 }]), &["0/Result"]),
        (
            json!([{ "Result": "Passed", "Steps": [{ "StepNr": 0, "Result": "Passed" }] }]),
            &["0/Steps/0/StepNr"],
        ),
        (json!({}), &[""]),
    ];
    for (instances, expected) in bad {
        let refused = engine.report(&lease.id, instances).await.unwrap_err();
        assert_eq!(fields(&refused), expected);
    }
    assert_eq!(world.count("select count(*) from instance").await?, 0);
    engine.report(&lease.id, json!([instance(1, "Passed")])).await?;
    let again = engine.report(&lease.id, json!([instance(1, "Failed")])).await?;
    assert_eq!(again[0].result(), TestResult::Passed, "the first one counts");
    Ok(())
}

#[tokio::test]
async fn what_an_engine_asks_for_is_checked() -> Result<()> {
    let world = World::new().await?;
    let engine = world.engine();
    let mut wanted = now("g\0", 0);
    wanted.engine = Some(" ".into());
    wanted.wait_in_sec = Some(31);
    let refused = engine.lease(wanted).await.unwrap_err();
    assert_eq!(fields(&refused), ["TargetGroup", "Engine", "MaxSchedules", "WaitInSec"]);
    let refused = engine.lease(now("", 101)).await.unwrap_err();
    assert_eq!(fields(&refused), ["MaxSchedules"]);
    Ok(())
}

#[tokio::test]
async fn nobody_gets_at_the_work_of_another_customer() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    world.dispatch().await?;
    let stranger = world.engine_of(&world.stranger().await);
    assert!(stranger.lease(now("", 9)).await?.is_empty());
    let lease = world.engine().lease_one().await?;
    for id in [lease.id.as_str(), "0"] {
        let all: [Result<(), Status>; 4] = [
            stranger.renew(id).await.map(drop),
            stranger.report(id, json!([instance(1, "Passed")])).await.map(drop),
            stranger.complete(id, false).await,
            stranger.release(id).await,
        ];
        assert!(all.iter().all(|sent| sent.as_ref().unwrap_err().code() == Code::NotFound));
    }
    Ok(())
}

#[tokio::test]
async fn work_that_cannot_be_read_does_not_keep_engines_from_the_rest() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let broken = world.select_environment("lab", "secret").await?;
    let first = world.dispatch().await?;
    world.spoil_password(&broken).await?;
    world.select_environment("lab", "secret").await?;
    let second = world.dispatch().await?;

    let leases = world.engine().lease(now("lab", 5)).await?;

    let [lease] = &leases[..] else { panic!("{leases:?}") };
    assert_eq!(lease.execution_id, second.id);
    let given_up = world.execution(&first.id).await?;
    let failed = (ReportStatus::EngineExecutionFailure, TestResult::Error);
    assert_eq!(outline(&given_up), [failed]);
    assert_eq!(given_up.status(), ExecutionStatus::Completed);
    assert!(given_up.test_reports[0].comment.as_deref().is_some_and(|c| c.starts_with("Not run")));
    // Alone, too; and engines get nothing rather than an error.
    world.spoil_password(&lease.environment.as_ref().unwrap().id).await?;
    world.dispatch().await?;
    assert!(world.engine().lease(now("lab", 1)).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn work_in_a_deleted_environment_is_given_up() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let environment = world.select_environment("lab", "secret").await?;
    let execution = world.dispatch().await?;
    world.delete_environment(&environment).await?;

    assert!(world.engine().lease(now("lab", 1)).await?.is_empty());

    let failed = (ReportStatus::EngineExecutionFailure, TestResult::Error);
    assert_eq!(outline(&world.execution(&execution.id).await?), [failed]);
    Ok(())
}

#[tokio::test]
async fn work_of_a_higher_priority_comes_first() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1)]).await?;
    let mut dispatched = Vec::new();
    for priority in ["Low", "whenever", "high"] {
        let changes = assay_proto::catalog::TestSetInput {
            priority: Some(priority.to_owned()),
            ..Default::default()
        };
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
async fn engines_can_ask_for_subjects_that_need_a_public_address() -> Result<()> {
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
    let asks = async |needs_public_ip: Option<bool>| {
        let wanted = assay_proto::execution::LeaseInput { needs_public_ip, ..now("", 1) };
        let leases = world.engine().lease(wanted).await?;
        Ok::<_, Status>(leases.into_iter().next().map(|lease| lease.execution_id))
    };
    assert_eq!(asks(Some(true)).await?, Some(dispatched[1].clone()));
    assert_eq!(asks(Some(false)).await?, Some(dispatched[0].clone()));
    assert_eq!(asks(Some(false)).await?, None);
    assert_eq!(asks(None).await?, Some(dispatched[2].clone()));
    Ok(())
}
