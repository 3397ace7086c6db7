//! Deleted test cases and test sets: what is shown of the present leaves them out.

use anyhow::Result;
use assay_events::{Consumer, EventConfig, Nats, NatsConfig, Relay, Stream};
use assay_execution::{Deletions, purge_deleted, roll_up};
use assay_proto::{
    Batch as _,
    catalog::ProjectInput,
    execution::{
        CaseState, GetGridRequest, GetMetricsRequest, InsightKind, ListInsightsRequest,
        insight_service_client::InsightServiceClient, metrics_service_client::MetricsServiceClient,
    },
};
use assay_records::Action;
use assay_runtime::nats::NatsServers;
use assay_testkit::{Broker, eventually};
use futures::TryStreamExt;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::{
    changes::{failed, run},
    test_case_states::set,
    world::World,
};

/// Returns the identifiers of the test cases that insights and the grid of the set show, and the number of
/// outcomes in the metrics.
async fn shown(world: &World) -> Result<(Vec<String>, Vec<String>, usize), Status> {
    let request = ListInsightsRequest {
        project_id: world.project.clone(),
        kind: InsightKind::MostFailed.into(),
        ..Default::default()
    };
    let mut insights = InsightServiceClient::new(world.execution.clone());
    let insights = insights.list_insights(world.user.call(request)).await?.into_inner();
    let insights: Vec<_> = insights.try_collect().await?;
    let insights = insights.iter().flat_map(|batch| batch.parse().unwrap());
    let mut insights: Vec<_> = insights.map(|insight| insight.test_case_identifier).collect();
    insights.sort_unstable();
    let (project_id, test_set_id) = (world.project.clone(), world.set.clone());
    let grid = GetGridRequest { project_id, test_set_id, ..Default::default() };
    let grid = match world.statistics().get_grid(world.user.call(grid)).await {
        Ok(grid) => grid.into_inner().cases,
        Err(_) => Vec::new(),
    };
    let grid = grid.into_iter().map(|case| case.test_case_identifier).collect();
    let metrics = GetMetricsRequest { project_id: world.project.clone() };
    let mut client = MetricsServiceClient::new(world.execution.clone());
    let metrics = client.get_metrics(world.user.call(metrics)).await?.into_inner();
    Ok((insights, grid, metrics.outcomes.len()))
}

#[tokio::test(flavor = "multi_thread")]
async fn insights_grids_and_metrics_leave_out_deleted_test_cases_and_sets() -> Result<()> {
    let world = World::new().await?;
    let on = ProjectInput { serves_metrics: true, ..ProjectInput::default() };
    world.change_project(on, &["ServesMetrics"]).await?;
    let mut broker = Broker::new().await;
    broker.start().await;
    let config = NatsConfig {
        servers: NatsServers::at(broker.url().into()),
        events: EventConfig { nats_replicas: 1, event_retention_days: 1 },
    };
    let nats = Nats::connect(&config, "test").await?;
    let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
    let catalog = Stream::of("catalog");
    let consumer = Consumer::new("execution-projects", catalog).only_action(Action::Deleted);
    tasks.spawn(consumer.run(world.db.clone(), nats.clone(), Deletions, stop.clone()));
    let relay = Relay::new(world.catalog_db().clone(), nats.clone(), catalog);
    tasks.spawn(relay.run(stop.clone()));

    let execution = run(&world, "main", json!([failed("a", "lost"), failed("b", "lost")])).await?;
    roll_up(&world.db).await?;
    let both = vec!["a".to_owned(), "b".to_owned()];
    assert_eq!(shown(&world).await?, (both.clone(), both.clone(), 1));

    let a = &execution.test_reports.iter().find(|one| one.test_case_identifier == "a").unwrap();
    set(&world, &a.test_case_id, CaseState::Muted).await?;
    world.delete_case(&a.test_case_id).await?;
    let b = vec!["b".to_owned()];
    let without_a = async || (shown(&world).await.ok()? == (b.clone(), b.clone(), 1)).then_some(());
    eventually("insights without the test case", without_a).await;
    assert_eq!(world.count("select count(*) from test_case_state").await?, 0);
    world.delete_set().await?;
    let without_set = async || (shown(&world).await.ok()? == (b.clone(), vec![], 0)).then_some(());
    eventually("metrics without the test set", without_set).await;
    assert_eq!(world.differences().await?, 0, "the results are kept");

    world.delete_project().await?;
    let removed = async || {
        purge_deleted(&world.db, world.artifacts_store()).await.ok()?;
        (world.count("select count(*) from deleted_record").await.ok()? == 0).then_some(())
    };
    eventually("the removal of what the project had", removed).await;
    stop.cancel();
    while tasks.join_next().await.is_some() {}
    broker.stop().await;
    Ok(())
}
