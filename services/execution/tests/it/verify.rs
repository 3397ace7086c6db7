//! `verify` finds stored state that does not follow from the results, and `rebuild` repairs it.

mod incidents;
mod sequences;
mod usage;

use std::time::Duration;

use anyhow::Result;
use assay_proto::execution::{MuteInput, ReviewInput};
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use tokio::time::timeout;

use crate::{
    changes::{failed, passed, reports, run},
    known_failures::{accepted, in_days, review},
    world::{World, instance},
};

/// The damages, of which each changes at least one row, and a part of the difference.
const DAMAGES: &[(&str, &str)] = &[
    ("update execution set status = 'Running' where status = 'Completed'", "status is"),
    ("update execution set status = 'Completed' where status = 'Canceled'", "status is"),
    (
        "update execution set status = 'Queued' where status = 'Running' and mode = 'External'",
        "status",
    ),
    ("update execution set result = 'Passed' where result <> 'Passed'", "result is"),
    ("update execution set result = 'Canceled' where result = 'Failed'", "result is"),
    (
        "update execution set test_cases_passed = test_cases_passed + 1,
          test_cases_total = test_cases_total + 1",
        "test_cases_passed",
    ),
    (
        "update execution set test_cases_pending = test_cases_pending - 1,
          test_cases_failed = test_cases_failed + 1 where test_cases_pending > 0",
        "test_cases_failed",
    ),
    ("update execution set total_duration_in_sec = 77", "total_duration_in_sec"),
    (
        "update execution set start_date_time = '2020-01-01', finish_date_time = '2020-01-02'",
        "start_date_time",
    ),
    ("delete from execution_tag", "execution_tag"),
    ("update execution_tag set tag = 'planted' where tag = 'smoke'", "execution_tag"),
    ("update test_report set result = 'Passed' where result = 'Failed'", "result is"),
    ("update test_report set result = 'Error' where result = 'Aborted'", "result is"),
    (
        "update test_report set status = 'Running' where status in ('InReview', 'Accepted')",
        "status is",
    ),
    ("update test_report set status = 'NotExecuted' where status = 'Canceled'", "status is"),
    (
        "update test_report set status = 'Accepted' where reviewed_by_id is null
          and status = 'InReview'",
        "status is",
    ),
    (
        "update test_report set status = 'InReview' where status = 'EngineExecutionFailure'",
        "status is",
    ),
    ("update test_report set status = 'InReview' where status = 'Running'", "status is"),
    ("update test_report set is_flaky = not is_flaky", "is_flaky"),
    ("update test_report set is_muted = not is_muted", "is_muted"),
    ("update test_report set change = 'Fixed' where change <> 'Fixed'", "change is"),
    ("update test_report set change = 'None' where change <> 'None'", "change is"),
    (
        "update test_report r set requested_instances_count = requested_instances_count + 1
      from execution e where e.id = r.execution_id and e.completion_date_time is not null
          and missing_result = 'NotExecuted'",
        "requested_instances_count",
    ),
    (
        "update test_report set finished_instances_count = 0 where finished_instances_count > 0",
        "finished_instances_count",
    ),
    (
        "update test_report set total_duration_in_sec = 7, average_duration_in_sec = 7
      where finished_instances_count > 0",
        "average_duration_in_sec",
    ),
    ("update test_report set start_date_time = now(), finish_date_time = now()", "start_date_time"),
    ("update failure set headline = 'planted'", "failure is"),
    ("update failure set fingerprint = '\\x00112233445566778899aabbccddeeff'", "failure is"),
    (
        "insert into failure (customer_id, test_report_id, instance_nr, project_id, execution_id,
          test_case_id, fingerprint, version, headline)
      select customer_id, test_report_id, 99, project_id, execution_id, test_case_id, fingerprint,
          version, headline from failure",
        "failure is",
    ),
    ("update test_case_counter set executions = executions + 5", "ExecutionNumber"),
    ("update test_case_counter set executions = 0", "ExecutionNumber"),
];

/// The differences, as an operator reads them.
async fn found(world: &World) -> Result<Vec<String>> {
    let mut found = Vec::new();
    assay_execution::verify(&world.db, |one| found.push(one.to_string())).await?;
    Ok(found)
}

/// The columns that are derived, of all rows. Revisions grow with each repair.
async fn state(world: &World) -> Result<Value> {
    Ok(sqlx::query_scalar(
        "select jsonb_build_object(
             'executions', (select jsonb_agg(to_jsonb(e) - array['revision', 'deadline'] order by id)
                            from execution e),
             'tags', (select jsonb_agg(to_jsonb(t) order by execution_id, tag) from execution_tag t),
             'reports', (select jsonb_agg(to_jsonb(r) - 'revision' order by id) from test_report r),
             'failures', (select jsonb_agg(to_jsonb(f) order by test_report_id, instance_nr)
                          from failure f),
             'counters', (select jsonb_agg(to_jsonb(c) order by test_case_id)
                          from test_case_counter c))",
    )
    .fetch_one(&world.db)
    .await?)
}

/// Executions in all states, with reports in all states.
async fn history(world: &World) -> Result<()> {
    world.include(&[("a", 1), ("b", 2), ("c", 1)]).await?;
    let retried = json!([failed("r", "lost"), failed("m", "known"), passed("a"),
        { "Identifier": "s", "Result": "Canceled" }]);
    let first = run(world, "main", retried).await?;
    let reported = reports(world, &first).await?;
    let known = reported.iter().filter(|report| report.headline == "known");
    let mute = MuteInput { muted_until: Some(in_days(7)), ..MuteInput::default() };
    let reports = known.map(|report| report.id.clone()).collect();
    review(world, &first, ReviewInput { reports, known: Some(mute), ..accepted() }).await?;
    run(world, "main", json!([failed("m", "known"), failed("r", "lost"), passed("a")])).await?;
    let flaky = json!([{ "Identifier": "r", "Result": "Failed", "Attempt": 1 },
        { "Identifier": "r", "Result": "Passed", "Attempt": 2 }, failed("new", "other")]);
    run(world, "main", flaky).await?;
    world
        .upload(&[br#"<testsuite><testcase name="up" time="0.5" timestamp="2026-11-20T12:00:00Z"/>
        <testcase name="down"><failure message="x"/></testcase></testsuite>"#])
        .await?;
    let canceled = world.start().await?;
    let one = json!([{ "Identifier": "a", "Result": "Passed", "DurationInSec": 1.5 }]);
    world.report(&canceled.id, one.clone()).await?;
    world.cancel(&canceled.id).await?;
    let aborted = world.start().await?;
    world.report(&aborted.id, one.clone()).await?;
    world.complete(&aborted.id).await?;
    let running = world.start().await?;
    let part =
        json!([{ "Identifier": "b", "InstanceNr": 1, "Result": "Passed", "DurationInSec": 1 }]);
    world.report(&running.id, part).await?;
    world.dispatch().await?;
    let engine = world.engine();
    let lease = engine.lease_one().await?;
    engine.report(&lease.id, json!([instance(1, "Passed")])).await?;
    engine.complete(&lease.id, false).await?;
    let broken = engine.lease_one().await?;
    engine.complete(&broken.id, true).await?;
    engine.lease_one().await?;
    world.dispatch().await?;
    // Tags are part of an input that only agents change.
    world.change("update execution set tags = 'smoke, nightly' where mode = 'External'").await?;
    assay_execution::rebuild(&world.db).await?;
    Ok(())
}

#[tokio::test]
async fn every_planted_damage_is_found_and_repaired() -> Result<()> {
    let world = World::new().await?;
    Box::pin(history(&world)).await?;
    assert_eq!(world.differences().await?, 0);
    let right = state(&world).await?;
    for (damage, part) in DAMAGES {
        let done = sqlx::query(AssertSqlSafe(*damage)).execute(&world.db).await?;
        assert!(done.rows_affected() > 0, "changes nothing: {damage}");
        let found = found(&world).await?;
        assert!(found.iter().any(|one| one.contains(part)), "{damage}: {found:#?}");
        let repaired = assay_execution::rebuild(&world.db).await?;
        assert!(repaired > 0, "repairs nothing: {damage}");
        assert_eq!(world.differences().await?, 0, "{damage}");
        assert_eq!(assay_execution::rebuild(&world.db).await?, 0, "{damage}");
        assert!(state(&world).await? == right, "not as before: {damage}");
    }
    Ok(())
}

#[tokio::test]
async fn a_canceled_execution_stays_canceled() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1)]).await?;
    let execution = world.start().await?;
    world.report(&execution.id, json!([{ "Identifier": "a", "Result": "Passed" }])).await?;
    world.cancel(&execution.id).await?;
    let canceled = world.execution(&execution.id).await?;

    assert_eq!(world.differences().await?, 0);
    assert_eq!(assay_execution::rebuild(&world.db).await?, 0);
    assert_eq!(world.execution(&execution.id).await?.result, canceled.result);
    Ok(())
}

#[tokio::test]
async fn a_rebuild_of_right_counters_does_not_wait_for_uploads() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    world.start().await?;
    let mut upload = assay_database::begin(&world.db).await?;
    let count = "update test_case_counter set executions = executions";
    assert_eq!(sqlx::query(count).execute(&mut *upload).await?.rows_affected(), 1);

    let rebuilt = timeout(Duration::from_secs(30), assay_execution::rebuild(&world.db)).await;
    assert_eq!(rebuilt.expect("the rebuild waits for the upload")?, 0);
    Ok(())
}

#[tokio::test]
async fn a_rebuild_waits_while_many_events_are_unpublished() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    world.start().await?;
    world
        .change(
            "insert into outbox (event_id, customer_id, record, noun, action, data, trace)
             select gen_random_uuid(), customer_id, id::text, 'execution', 'requested', '{}', '{}'
             from execution, generate_series(1, 6000)",
        )
        .await?;
    let rebuilt = timeout(Duration::from_millis(500), assay_execution::rebuild(&world.db)).await;
    assert!(rebuilt.is_err(), "the events of users would wait behind those of the rebuild");

    world.change("update outbox set published_at = now()").await?;
    assert_eq!(assay_execution::rebuild(&world.db).await?, 0);
    assert!(assay_events::unpublished(&world.db).await? > 0, "the state is published");
    Ok(())
}

#[tokio::test]
async fn an_execution_that_cannot_be_read_is_not_taken_for_one_without_differences() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    assert_eq!(assay_execution::verify(&world.db, |_| ()).await?, (1, 0));

    world.change("alter view live_execution rename column has_failed to unknown").await?;
    let failed = world.differences().await.expect_err("the execution was left out");
    assert!(format!("{failed:#}").contains(&execution.id), "{failed:#}");
    let failed = assay_execution::rebuild(&world.db).await.map_err(anyhow::Error::from);
    let failed = failed.expect_err("the execution cannot be repaired");
    assert!(format!("{failed:#}").contains(&execution.id), "{failed:#}");
    Ok(())
}
