//! Execution times: they equal a recount of the instances, and outlive them.

mod kept;

use anyhow::Result;
use assay_execution::count_execution_times;
use assay_proto::{
    Batch, Page,
    catalog::EnvironmentInput,
    execution::{
        ExecutionTime, ExecutionTimeBatch, GetMonthlyExecutionTimeRequest, LeaseInput,
        ListExecutionTimesRequest, MonthlyExecutionTime,
        execution_time_service_client::ExecutionTimeServiceClient,
    },
};
use assay_rpc::grpc::Channel;
use assay_testkit::TestUser;
use futures::TryStreamExt;
use serde_json::json;
use tonic::{Code, Status};

use crate::world::{World, fields, now};

fn service(world: &World) -> ExecutionTimeServiceClient<Channel> {
    ExecutionTimeServiceClient::new(world.execution.clone())
}

async fn batches(
    world: &World,
    user: &TestUser,
    request: ListExecutionTimesRequest,
) -> Result<Vec<ExecutionTimeBatch>, Status> {
    let batches = service(world).list_execution_times(user.call(request)).await?;
    batches.into_inner().try_collect().await
}

/// Lists the execution times of the customer of all months of this test.
async fn list(world: &World, request: ListExecutionTimesRequest) -> Result<Vec<ExecutionTime>> {
    let user = world.colleague("ExecutionTimes").await;
    let batches = batches(world, &user, request).await?;
    Ok(batches.iter().flat_map(|batch| batch.parse().unwrap()).collect())
}

async fn month(world: &World) -> Result<String> {
    Ok(sqlx::query_scalar("select to_char(now() at time zone 'utc', 'YYYY-MM')")
        .fetch_one(&world.db)
        .await?)
}

async fn sum(world: &World) -> Result<MonthlyExecutionTime> {
    let user = world.colleague("Invoicing").await;
    let request = GetMonthlyExecutionTimeRequest { month: month(world).await? };
    let sum = service(world).get_monthly_execution_time(user.call(request)).await?;
    Ok(sum.into_inner())
}

/// Returns the number and the seconds of all stored instances.
async fn recount(world: &World) -> Result<(i64, f64)> {
    let recount = sqlx::query_as(
        "select count(*), coalesce(sum(duration_in_sec), 0) from instance
         where result <> 'NotExecuted'",
    );
    Ok(recount.fetch_one(&world.db).await?)
}

fn seconds(times: &[ExecutionTime]) -> f64 {
    times.iter().map(|time| time.duration_in_h * 3600.0).sum()
}

#[track_caller]
fn assert_near(one: f64, other: f64) {
    assert!((one - other).abs() < 1e-6, "{one} instead of {other}");
}

/// Runs a test with two attempts and one instance more.
async fn report(world: &World) -> Result<String> {
    let execution = world.start().await?;
    let results = json!([
        { "Identifier": "a", "InstanceNr": 1, "Result": "Passed", "DurationInSec": 1800 },
        { "Identifier": "a", "InstanceNr": 2, "Result": "Failed", "DurationInSec": 0.25 },
    ]);
    world.report(&execution.id, results).await?;
    world.complete(&execution.id).await?;
    Ok(execution.id)
}

#[tokio::test]
async fn execution_times_are_summed_by_month_set_and_target_group() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 2)]).await?;
    report(&world).await?;
    let unfinished = world.start().await?;
    world.cancel(&world.start().await?.id).await?;
    world
        .select(EnvironmentInput {
            name: "Lab".into(),
            target_group: "linux".into(),
            labels: vec!["gpu".into()],
            exclusive: true,
            ..EnvironmentInput::default()
        })
        .await?;
    world.dispatch().await?;
    let engine = world.engine();
    let offered = LeaseInput { labels: vec!["gpu".into()], ..now("linux", 1) };
    let lease = engine.lease(offered).await?.remove(0);
    let results = json!([
        { "InstanceNr": 1, "Result": "Passed", "DurationInSec": 3600 },
        { "InstanceNr": 2, "Result": "Passed", "DurationInSec": 3600 },
    ]);
    engine.report(&lease.id, results).await?;
    engine.complete(&lease.id, false).await?;
    count_execution_times(&world.db).await?;
    count_execution_times(&world.db).await?;

    let mut times = list(&world, ListExecutionTimesRequest::default()).await?;
    times.sort_by(|one, other| one.target_group.cmp(&other.target_group));
    let [reported, dispatched] = &times[..] else { panic!("{times:?}") };
    assert_eq!((reported.executions, reported.instances), (1, 2));
    assert_near(reported.duration_in_h, 1800.25 / 3600.0);
    assert_eq!((dispatched.target_group.as_str(), dispatched.executions), ("linux", 1));
    assert_near(dispatched.duration_in_h, 2.0);
    assert_eq!((&dispatched.project_id, &dispatched.test_set_id), (&world.project, &world.set));
    assert_eq!(dispatched.customer_id, world.user.customer.to_string());
    assert_eq!(dispatched.month, month(&world).await?);
    assert!(dispatched.test_set_name.is_some());
    let (instances, duration) = recount(&world).await?;
    assert_near(seconds(&times), duration);
    let sum = sum(&world).await?;
    assert_eq!((sum.executions, sum.instances), (2, instances));
    assert_near(sum.duration_in_h * 3600.0, duration);
    assert_eq!(world.differences().await?, 0);
    world.cancel(&unfinished.id).await?;
    count_execution_times(&world.db).await?;
    assert_eq!(world.differences().await?, 0, "an execution without instances has no time");
    Ok(())
}

#[tokio::test]
async fn an_execution_counts_in_the_month_in_which_it_ended() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 2)]).await?;
    let old = report(&world).await?;
    sqlx::query(
        "update execution set request_time = '2025-10-31T23:00Z',
             completion_date_time = '2025-11-01T00:30:00+01' where id::text = $1",
    )
    .bind(old)
    .execute(&world.db)
    .await?;
    report(&world).await?;
    count_execution_times(&world.db).await?;

    let of = |from: &str, to: &str| ListExecutionTimesRequest {
        from: Some(from.to_owned()),
        to: Some(to.to_owned()),
        ..Default::default()
    };
    let october = list(&world, of("2025-10", "2025-10")).await?;
    assert_eq!(october.iter().map(|time| time.executions).collect::<Vec<_>>(), [1], "in UTC");
    assert!(list(&world, of("2025-11", "2025-11")).await?.is_empty());
    assert_eq!(sum(&world).await?.executions, 1);

    let user = world.colleague("ExecutionTimes").await;
    for (from, to, field) in [
        ("2025-11", "2025-10", "from"),
        ("2024-10", "2026-10", "from"),
        ("2025-13", "2026-01", "from"),
        ("2025-10", "10/2025", "to"),
    ] {
        let refused = batches(&world, &user, of(from, to)).await.unwrap_err();
        assert_eq!(fields(&refused), [field], "{from} {to}");
    }
    let project_id = Some("shop".to_owned());
    let request = ListExecutionTimesRequest { project_id, ..Default::default() };
    assert_eq!(fields(&batches(&world, &user, request).await.unwrap_err()), ["projectId"]);
    Ok(())
}

#[tokio::test]
async fn execution_times_are_paged_and_searched() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 2)]).await?;
    report(&world).await?;
    count_execution_times(&world.db).await?;
    world
        .change(
            "insert into execution_time
             select customer_id, gen_random_uuid(), project_id, test_set_id, 'group ' || n, month, 1, n
             from execution_time, generate_series(1, 4) as n",
        )
        .await?;
    let user = world.colleague("ExecutionTimes").await;
    let (mut cursor, mut groups) = (None, Vec::new());
    loop {
        let page = Some(Page { limit: Some(2), cursor, ..Default::default() });
        let request = ListExecutionTimesRequest { page, ..Default::default() };
        let batches = batches(&world, &user, request).await?;
        let items: Vec<ExecutionTime> =
            batches.iter().flat_map(|batch| batch.parse().unwrap()).collect();
        assert!(items.len() <= 2);
        groups.extend(items.into_iter().map(|time| time.target_group));
        cursor = batches.last().and_then(|batch| batch.next_cursor.clone());
        if cursor.is_none() {
            break;
        }
    }
    groups.sort();
    assert_eq!(groups, ["", "group 1", "group 2", "group 3", "group 4"]);
    let search = |q: &str| ListExecutionTimesRequest {
        page: Some(Page { q: Some(q.to_owned()), ..Default::default() }),
        ..Default::default()
    };
    assert!(list(&world, search("no such set")).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn the_sum_of_a_month_says_whether_executions_wait_to_be_counted() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 2)]).await?;
    let user = world.colleague("Invoicing").await;
    let is_partial = async |month: String| {
        let request = GetMonthlyExecutionTimeRequest { month };
        let sum = service(&world).get_monthly_execution_time(user.call(request)).await?;
        anyhow::Ok(sum.into_inner().is_partial)
    };
    let this_month = month(&world).await?;
    assert!(!is_partial(this_month.clone()).await?);
    let old = report(&world).await?;
    assert!(is_partial(this_month.clone()).await?);
    // It ended in another month, in UTC.
    sqlx::query(
        "update execution set completion_date_time = '2025-11-01T00:30:00+01' where id::text = $1",
    )
    .bind(old)
    .execute(&world.db)
    .await?;
    let months = [(this_month, false), ("2025-10".into(), true), ("2025-11".into(), false)];
    for (month, expected) in months {
        assert_eq!(is_partial(month.clone()).await?, expected, "{month}");
    }
    count_execution_times(&world.db).await?;
    assert!(!is_partial("2025-10".into()).await?);
    Ok(())
}

#[tokio::test]
async fn execution_times_are_those_of_the_customer() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 2)]).await?;
    report(&world).await?;
    count_execution_times(&world.db).await?;
    let stranger = world.stranger_who("ExecutionTimes, Invoicing").await;
    assert!(batches(&world, &stranger, ListExecutionTimesRequest::default()).await?.is_empty());
    let request = GetMonthlyExecutionTimeRequest { month: month(&world).await? };
    let sum = service(&world).get_monthly_execution_time(stranger.call(request.clone())).await?;
    assert_eq!(sum.into_inner(), MonthlyExecutionTime::default());
    let refused = service(&world).get_monthly_execution_time(world.user.call(request)).await;
    assert_eq!(refused.unwrap_err().code(), Code::PermissionDenied);
    let refused = batches(&world, &world.user, ListExecutionTimesRequest::default()).await;
    assert_eq!(refused.unwrap_err().code(), Code::PermissionDenied);
    Ok(())
}
