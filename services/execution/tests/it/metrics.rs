//! Metrics of projects for monitoring systems.

use anyhow::Result;
use assay_proto::{
    catalog::{GateInput, ProjectInput, TestSetInput},
    execution::{
        GetMetricsRequest, ProjectMetrics, TestSetOutcome, VerdictState,
        metrics_service_client::MetricsServiceClient,
    },
};
use assay_testkit::TestUser;
use serde_json::json;
use tonic::{Code, Status};

use crate::{
    changes::{failed, passed, run},
    world::World,
};

async fn metrics_for(world: &World, user: &TestUser) -> Result<ProjectMetrics, Status> {
    let request = GetMetricsRequest { project_id: world.project.clone() };
    let mut metrics = MetricsServiceClient::new(world.execution.clone());
    Ok(metrics.get_metrics(user.call(request)).await?.into_inner())
}

async fn outcomes(world: &World) -> Result<Vec<TestSetOutcome>, Status> {
    Ok(metrics_for(world, &world.user).await?.outcomes)
}

/// Returns services with a project that serves metrics.
async fn world() -> Result<World> {
    let world = World::new().await?;
    let on = ProjectInput { serves_metrics: true, ..ProjectInput::default() };
    world.change_project(on, &["ServesMetrics"]).await?;
    Ok(world)
}

#[tokio::test]
async fn a_project_serves_metrics_only_if_it_is_set() -> Result<()> {
    let world = World::new().await?;
    run(&world, "main", json!([passed("a")])).await?;
    let off = metrics_for(&world, &world.user).await.unwrap_err();
    assert_eq!(off.code(), Code::PermissionDenied);
    assert!(off.message().contains("ServesMetrics of the project is false"), "{off}");

    let on = ProjectInput { serves_metrics: true, ..ProjectInput::default() };
    world.change_project(on, &["ServesMetrics"]).await?;
    let metrics = metrics_for(&world, &world.user).await?;
    assert_eq!((metrics.project_name.as_str(), metrics.outcomes.len()), ("Shop", 1));
    let stranger = world.stranger().await;
    assert_eq!(metrics_for(&world, &stranger).await.unwrap_err().code(), Code::NotFound);
    let guest = world.colleague("Execute").await;
    assert_eq!(metrics_for(&world, &guest).await.unwrap_err().code(), Code::PermissionDenied);
    Ok(())
}

#[tokio::test]
async fn metrics_are_the_last_outcomes_on_the_default_branch() -> Result<()> {
    let world = world().await?;
    assert_eq!(outcomes(&world).await?, []);
    run(&world, "main", json!([passed("a"), failed("b", "lost"), passed("c")])).await?;
    run(&world, "main", json!([failed("a", "lost"), failed("b", "lost"), passed("c")])).await?;
    run(&world, "feature", json!([passed("a")])).await?;

    let [nightly] = &outcomes(&world).await?[..] else { panic!("not one series") };
    assert_eq!((nightly.test_set_name.as_str(), nightly.environment_name()), ("Nightly", ""));
    let statistic = nightly.statistic.clone().unwrap();
    assert_eq!((statistic.test_cases_passed, statistic.test_cases_failed), (1, 2));
    let changes = nightly.changes.unwrap();
    assert_eq!((changes.new, changes.still, changes.fixed), (1, 1, 0));
    assert_eq!(nightly.verdict(), VerdictState::Failed);
    assert!(nightly.completion_date_time.is_some());

    run(&world, "", json!([passed("a"), passed("b")])).await?;
    let latest = outcomes(&world).await?.remove(0);
    assert_eq!(latest.verdict(), VerdictState::Passed, "an execution without a branch counts");
    let required = vec!["c".to_owned()];
    let gate = GateInput { required_test_cases: required, ..GateInput::default() };
    let changes = TestSetInput { gate: Some(gate), ..TestSetInput::default() };
    world.change_set(changes, &["Gate"]).await?;
    run(&world, "main", json!([passed("a")])).await?;
    let latest = outcomes(&world).await?.remove(0);
    assert_eq!(latest.verdict(), VerdictState::Failed, "a required test case is missing");

    world.select_environment("pads", "sesame").await?;
    let case = run(&world, "main", json!([passed("c")])).await?.test_reports.remove(0);
    world.alias(&case.test_case_id, "renamed").await?;
    run(&world, "main", json!([passed("renamed")])).await?;
    let both = outcomes(&world).await?;
    let names: Vec<_> = both.iter().map(TestSetOutcome::environment_name).collect();
    assert_eq!(names, ["Lab", ""], "each environment has an outcome, the latest first");
    assert_eq!(both[0].verdict(), VerdictState::Passed);

    let trunk = ProjectInput { default_branch: Some("feature".into()), ..ProjectInput::default() };
    world.change_project(trunk, &["DefaultBranch"]).await?;
    let [feature] = &outcomes(&world).await?[..] else { panic!("not one series") };
    assert_eq!(feature.statistic.as_ref().unwrap().test_cases_passed, 2, "that without a branch");
    Ok(())
}

#[tokio::test]
async fn metrics_have_the_latest_hundred_outcomes_of_ninety_days() -> Result<()> {
    let world = world().await?;
    run(&world, "main", json!([passed("a")])).await?;
    world
        .change(
            "insert into execution
             select (jsonb_populate_record(e, jsonb_build_object(
                 'id', overlay(gen_random_uuid()::text placing
                     left(first_id_at(now() - make_interval(hours => nr))::text, 13) from 1 for 13),
                 'test_set_id', gen_random_uuid(), 'test_set_name', 'set ' || nr
             ))).*
             from execution e, generate_series(1, 119) as nr",
        )
        .await?;
    let metrics = metrics_for(&world, &world.user).await?;
    assert_eq!((metrics.outcomes.len(), metrics.omitted), (100, 20));
    assert_eq!(metrics.outcomes[0].test_set_name, "Nightly");
    assert_eq!(metrics.outcomes[99].test_set_name, "set 99");

    world
        .change(
            "update execution
             set id = overlay(id::text placing
                 left(first_id_at(now() - interval '91 days')::text, 13) from 1 for 13)::uuid
             where test_set_name <> 'Nightly'",
        )
        .await?;
    let metrics = metrics_for(&world, &world.user).await?;
    assert_eq!((metrics.outcomes.len(), metrics.omitted), (1, 0));
    Ok(())
}
