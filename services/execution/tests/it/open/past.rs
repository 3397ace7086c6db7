//! Executions of the past.

use anyhow::Result;
use assay_proto::{
    Batch, Page, Timestamp,
    execution::{ListTestCaseRunsRequest, OpenExecutionInput, TestCaseRun},
};
use chrono::{Months, Utc};
use futures::TryStreamExt;
use serde_json::json;

use super::{by_name, passed};
use crate::{changes::reports, world::World};

/// The time some months ago.
#[expect(clippy::disallowed_methods, reason = "it is compared with the time of the database")]
fn months_ago(months: u32) -> Timestamp {
    Timestamp(Utc::now() - Months::new(months))
}

#[tokio::test]
async fn results_of_a_month_that_has_expired_are_stored() -> Result<()> {
    let world = World::new().await?;
    // The installation is old, and has dropped the month before the last one.
    for table in ["instance", "attempt"] {
        let statement = format!(
            "drop table {table}_before;
             create table {table}_before partition of {table} for values from (minvalue)
             to (first_id_at(date_trunc('month', now(), 'utc') - interval '4 months'))"
        );
        for statement in statement.split(';') {
            world.change(statement.to_owned().leak()).await?;
        }
    }
    for months in [2, 9] {
        let input = OpenExecutionInput {
            request_time: Some(months_ago(months)),
            ..by_name(&format!("run-{months}"))
        };
        let execution = world.open(input).await?;
        world.report(&execution.id, json!([passed("a")])).await?;
    }

    assert_eq!(world.count("select count(*) from instance").await?, 2);
    assert_eq!(world.count("select count(*) from instance_before").await?, 1);
    Ok(())
}

#[tokio::test]
async fn the_history_of_a_case_is_in_the_order_of_its_requests() -> Result<()> {
    let world = World::new().await?;
    let mut case = String::new();
    for (months, branch) in [(0, "main"), (9, "main"), (2, "feature")] {
        let request_time = (months > 0).then(|| months_ago(months));
        let branch = Some(branch.to_owned());
        let input =
            OpenExecutionInput { request_time, branch, ..by_name(&format!("run-{months}")) };
        let execution = world.open(input).await?;
        world.report(&execution.id, json!([passed("a")])).await?;
        case = reports(&world, &execution).await?.remove(0).test_case_id;
    }
    let runs = async |page, branch: Option<&str>| -> Result<Vec<TestCaseRun>> {
        let request = ListTestCaseRunsRequest {
            project_id: world.project.clone(),
            test_case_id: case.clone(),
            page: Some(page),
            branch: branch.map(str::to_owned),
            ..Default::default()
        };
        let batches = world.statistics().list_test_case_runs(world.user.call(request)).await?;
        let batches: Vec<_> = batches.into_inner().try_collect().await?;
        Ok(batches.into_iter().flat_map(|batch| batch.parse().unwrap()).collect())
    };

    let all = runs(Page::default(), None).await?;

    let times: Vec<_> = all.iter().map(|run| run.request_time.unwrap()).collect();
    assert!(times.len() == 3 && times.is_sorted_by(|one, next| one > next), "{times:?}");
    let branches = all.iter().map(TestCaseRun::branch).collect::<Vec<_>>();
    assert_eq!(branches, ["main", "feature", "main"]);
    let cursor = Some(all[0].id.clone());
    assert_eq!(runs(Page { cursor, ..Page::default() }, None).await?, all[1..]);
    assert_eq!(runs(Page::default(), Some("feature")).await?, all[1..2]);
    Ok(())
}
