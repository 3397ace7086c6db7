//! Debug records of test reports.

use anyhow::Result;
use assay_proto::{
    TestResult,
    execution::{DebugReport, GetDebugRecordRequest},
};
use assay_testkit::TestUser;
use futures::TryStreamExt;
use serde_json::json;
use tonic::{Code, Status};

use crate::world::World;

async fn record(world: &World, user: &TestUser, id: &str) -> Result<Vec<DebugReport>, Status> {
    let request = GetDebugRecordRequest { id: id.to_owned() };
    let parts = world.debug().get_debug_record(user.call(request)).await?;
    parts.into_inner().try_collect().await
}

#[tokio::test]
async fn a_debug_record_shows_the_state_and_results_of_a_report() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 200)]).await?;
    let execution = world.start().await?;
    let result = |nr: i32| json!({ "Identifier": "a", "InstanceNr": nr, "Result": "Passed", "DurationInSec": nr });
    let results: Vec<_> = (1..=150).map(result).collect();
    world.report(&execution.id, json!(results)).await?;
    let report = &execution.test_reports[0];

    let parts = record(&world, &world.user, &report.id).await?;

    let first = &parts[0];
    assert_eq!(
        (&first.project_id, &first.test_case_id, &first.test_plan_id),
        (&world.project, &report.test_case_id, &report.test_plan_id)
    );
    let stored = first.test_report.as_ref().unwrap();
    assert_eq!((stored.id.as_str(), stored.instance_count), (report.id.as_str(), 200));
    assert!(!stored.is_finished && !stored.archived && !stored.deleted);
    let results: Vec<_> = parts.iter().flat_map(|part| &part.results).collect();
    assert!(results.iter().map(|result| result.instance_nr).eq(1..=150));
    assert_eq!((results[6].result(), results[6].duration_in_sec), (TestResult::Passed, 7.0));

    world.complete(&execution.id).await?;
    let parts = record(&world, &world.user, &report.id).await?;
    assert!(parts[0].test_report.as_ref().unwrap().is_finished);
    Ok(())
}

#[tokio::test]
async fn a_debug_record_shows_the_schedules_of_a_report() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    let report = &execution.test_reports[0];
    sqlx::query(
        "insert into schedule (customer_id, id, execution_id, project_id, test_report_id,
             report_sequence_nr, target_group, needs_public_ip, priority, status, initial_queued_time)
         select customer_id, gen_random_uuid(), execution_id, $1::uuid, id, 7, 'lab', true, 0,
                'Queued', '2026-11-20T23:34:00.1+01'
         from test_report where id::text = $2",
    )
    .bind(&world.project)
    .bind(&report.id)
    .execute(&world.db)
    .await?;

    let parts = record(&world, &world.user, &report.id).await?;

    let mut schedule = serde_json::to_value(&parts[0].schedules[0])?;
    assert!(schedule["Id"].take().is_string());
    assert_eq!(
        schedule,
        json!({
            "Id": null, "ReportSequenceNr": 7, "Status": "Queued",
            "InitialQueuedTime": "2026-11-20T22:34:00.100000", "ScheduleSentAt": null,
            "MinimumDurationInMin": 0.0, "NeedsPublicIp": true, "SoftwareIdentifier": "",
            "StopOnFailure": false, "Tags": "nightly", "TargetGroup": "lab",
            "TestEnvironmentIdentifier": "",
        })
    );
    Ok(())
}

#[tokio::test]
async fn debug_records_of_other_customers_are_not_found() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let report = world.start().await?.test_reports.remove(0);
    let stranger = world.stranger().await;
    for (user, id) in [(&stranger, &report.id), (&world.user, &world.set)] {
        assert_eq!(record(&world, user, id).await.unwrap_err().code(), Code::NotFound);
    }
    Ok(())
}
