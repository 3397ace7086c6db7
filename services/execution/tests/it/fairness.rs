//! Fairness between customers, and between executions of one customer.

use std::{
    future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Result;
use assay_proto::execution::{
    Execution, ReportResultsRequest, ReportResultsTarget, UploadResultsRequest, UploadResultsTarget,
};
use assay_testkit::{TestUser, eventually};
use futures::{StreamExt, stream};
use serde_json::json;
use tokio::task::JoinSet;
use tonic::Status;
use uuid::Uuid;

use crate::world::World;

/// Copies an execution with its reports for another customer.
async fn copy_for(world: &World, other: &TestUser, execution: &Execution) -> Result<()> {
    for statement in [
        "insert into execution
         select (jsonb_populate_record(e, jsonb_build_object('customer_id', $1))).*
         from execution e where id = $2::uuid",
        "insert into test_report
         select (jsonb_populate_record(r, jsonb_build_object('customer_id', $1))).*
         from test_report r where execution_id = $2::uuid",
    ] {
        sqlx::query(statement).bind(other.customer).bind(&execution.id).execute(&world.db).await?;
    }
    Ok(())
}

/// Reports an instance of case `a`.
async fn report(world: &World, user: &TestUser, execution: &str, nr: i32) -> Result<(), Status> {
    let target = ReportResultsTarget {
        project_id: world.project.clone(),
        execution_id: execution.to_owned(),
        lines: false,
    };
    let result = json!([{ "Identifier": "a", "InstanceNr": nr, "Result": "Passed" }]);
    let message =
        ReportResultsRequest { target: Some(target), chunk: result.to_string().into(), last: true };
    world.results().report_results(user.call(stream::iter([message]))).await.map(drop)
}

/// Reports once, and returns the duration of the call.
async fn time_of_report(world: &World, user: &TestUser, execution: &str) -> Result<Duration> {
    let begun = Instant::now();
    report(world, user, execution, 1).await?;
    Ok(begun.elapsed())
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_uploads_of_one_customer_do_not_delay_another_customer() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    let stranger = world.stranger().await;
    let (mut uploads, begun) = (JoinSet::new(), Arc::new(AtomicUsize::new(0)));
    for _ in 0..200 {
        let target = UploadResultsTarget {
            project_id: Uuid::now_v7().to_string(),
            test_set_id: Uuid::now_v7().to_string(),
            ..UploadResultsTarget::default()
        };
        let chunk = "<testsuite>".into();
        let head = UploadResultsRequest { target: Some(target), chunk, ..Default::default() };
        let begun = begun.clone();
        let endless = stream::once(async move {
            begun.fetch_add(1, Ordering::Relaxed);
            future::pending().await
        });
        let request = stranger.call(stream::iter([head]).chain(endless));
        let mut results = world.results();
        uploads.spawn(async move { results.upload_results(request).await.map(drop) });
    }
    let all = async || (begun.load(Ordering::Relaxed) == 200).then_some(());
    eventually("200 running uploads", all).await;

    let took = time_of_report(&world, &world.user, &execution.id).await?;

    assert!(took < Duration::from_secs(2), "it took {took:?}");
    uploads.abort_all();
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_that_wait_for_one_execution_do_not_delay_other_writers() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 200)]).await?;
    let (locked, free) = (world.start().await?, world.start().await?);
    let stranger = world.stranger().await;
    copy_for(&world, &stranger, &free).await?;
    let mut lock = assay_database::begin(&world.db).await?;
    sqlx::query("select from execution where id = $1::uuid for update")
        .bind(&locked.id)
        .execute(&mut *lock)
        .await?;
    let posts = stream::iter(1..=200).map(|nr| report(&world, &world.user, &locked.id, nr));
    let posts = posts.buffer_unordered(200).collect::<Vec<_>>();
    let others = async {
        let in_use = || world.db.size() as usize - world.db.num_idle();
        let few = async || (world.db.size() > 4 && in_use() <= 2).then_some(());
        eventually("free connections", few).await;
        let other = time_of_report(&world, &stranger, &free.id).await?;
        let same = time_of_report(&world, &world.user, &free.id).await?;
        lock.commit().await?;
        anyhow::Ok((other, same))
    };

    let (posted, others) = tokio::join!(posts, others);

    let (other, same) = others?;
    assert!(other < Duration::from_secs(2), "another customer waited for {other:?}");
    assert!(same < Duration::from_secs(2), "another execution waited for {same:?}");
    assert!(posted.iter().all(Result::is_ok), "{:?}", posted.iter().find(|post| post.is_err()));
    Ok(())
}
