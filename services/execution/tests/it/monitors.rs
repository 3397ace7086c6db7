//! Monitors: they mute test cases while these are flaky, and never those that are broken.

mod backtest;
mod branches;
mod changed;
mod concurrent;
mod series;

use anyhow::Result;
use assay_execution::{evaluate_monitors, roll_up};
use assay_proto::{
    Batch,
    catalog::ProjectInput,
    execution::{
        AlarmAction, CaseState, CreateMonitorRequest, DeleteMonitorRequest, Execution,
        GetMonitorRequest, ListMonitorActionsRequest, ListMonitorsRequest, Monitor, MonitorAction,
        MonitorActionKind, MonitorInput, MonitorMeasure, UpdateMonitorRequest,
        monitor_service_client::MonitorServiceClient,
    },
};
use assay_rpc::grpc::Channel;
use futures::TryStreamExt;
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::{
    changes::{failed, passed, run},
    known_failures::reviewer,
    test_case_states::{case_of, enable, get, set},
    world::{World, fields},
};

impl World {
    fn monitors(&self) -> MonitorServiceClient<Channel> {
        MonitorServiceClient::new(self.execution.clone())
    }
}

/// A monitor that mutes tests with two recoveries, and lifts that after three passes.
fn recoveries() -> MonitorInput {
    MonitorInput {
        name: "Flaky tests".to_owned(),
        measure: MonitorMeasure::Recoveries.into(),
        runs: Some(10),
        threshold: 2.0,
        action: AlarmAction::Mute.into(),
        recover_after: Some(3),
        branch: Some("main".to_owned()),
        dry_run: false,
    }
}

async fn create(world: &World, input: MonitorInput) -> Result<Monitor, Status> {
    let request = CreateMonitorRequest { project_id: world.project.clone(), monitor: Some(input) };
    let request = reviewer(world).await.call(request);
    Ok(world.monitors().create_monitor(request).await?.into_inner())
}

async fn update(
    world: &World,
    monitor: &Monitor,
    changes: MonitorInput,
    field: &str,
) -> Result<Monitor, Status> {
    let request = UpdateMonitorRequest {
        project_id: world.project.clone(),
        id: monitor.id.clone(),
        data_version: Some(monitor.data_version.clone()),
        changes: Some(changes),
        fields: vec![field.to_owned()],
    };
    let request = reviewer(world).await.call(request);
    Ok(world.monitors().update_monitor(request).await?.into_inner())
}

async fn list(world: &World) -> Result<Vec<String>, Status> {
    let request = ListMonitorsRequest { project_id: world.project.clone(), page: None };
    let batches = world.monitors().list_monitors(world.user.call(request)).await?;
    let batches: Vec<_> = batches.into_inner().try_collect().await?;
    Ok(batches.iter().flat_map(|batch| batch.parse().unwrap()).map(|one| one.name).collect())
}

/// Returns the actions of a monitor, the oldest first.
async fn actions(world: &World, monitor: &Monitor) -> Result<Vec<MonitorAction>, Status> {
    let (project_id, id) = (world.project.clone(), monitor.id.clone());
    let request = ListMonitorActionsRequest { project_id, id, page: None };
    let batches = world.monitors().list_monitor_actions(world.user.call(request)).await?;
    let batches: Vec<_> = batches.into_inner().try_collect().await?;
    let mut actions: Vec<_> = batches.iter().flat_map(|batch| batch.parse().unwrap()).collect();
    actions.reverse();
    Ok(actions)
}

async fn kinds(world: &World, monitor: &Monitor) -> Result<Vec<MonitorActionKind>, Status> {
    Ok(actions(world, monitor).await?.iter().map(MonitorAction::action).collect())
}

fn result(test: &str, letter: char) -> Vec<Value> {
    let attempt = |mut result: Value, attempt| {
        result["Attempt"] = json!(attempt);
        result
    };
    match letter {
        'P' => vec![passed(test)],
        'F' => vec![failed(test, "lost")],
        _ => vec![attempt(failed(test, "lost"), 1), attempt(passed(test), 2)],
    }
}

/// Runs a test once for each letter, the first one first, and evaluates monitors after each.
async fn runs(world: &World, branch: &str, letters: &str) -> Result<Execution> {
    let mut last = Execution::default();
    for letter in letters.chars() {
        last = run(world, branch, json!(result("a", letter))).await?;
        roll_up(&world.db).await?;
        evaluate_monitors(&world.db).await?;
    }
    Ok(last)
}

async fn state(world: &World, execution: &Execution) -> Result<CaseState, Status> {
    Ok(get(world, &case_of(execution, "a")).await?.state())
}

#[tokio::test]
async fn a_flaky_test_is_muted_until_it_has_recovered_and_begins_again() -> Result<()> {
    use MonitorActionKind::{Muted, Recovered};
    let world = World::new().await?;
    let monitor = create(&world, recoveries()).await?;

    let last = runs(&world, "main", "PFPFP").await?;
    assert_eq!(state(&world, &last).await?, CaseState::Enabled, "no failure after two breaks");
    let last = runs(&world, "main", "F").await?;

    let muted = get(&world, &case_of(&last, "a")).await?;
    assert_eq!((muted.state(), muted.owner.as_str()), (CaseState::Muted, "monitor Flaky tests"));
    assert_eq!(muted.reason, "recovered 2 times in its last 6 runs");
    let taken = actions(&world, &monitor).await?.remove(0);
    assert_eq!((taken.action(), taken.is_dry), (Muted, false));
    assert_eq!((taken.execution_id, taken.test_case_identifier), (last.id.clone(), "a".to_owned()));

    let last = runs(&world, "main", "PPF").await?;
    assert_eq!(state(&world, &last).await?, CaseState::Muted);
    let last = runs(&world, "main", "PPP").await?;
    assert_eq!(state(&world, &last).await?, CaseState::Enabled, "it has recovered");
    assert_eq!(kinds(&world, &monitor).await?, [Muted, Recovered]);

    // It was repaired, so its next failure is one of a stable test.
    let last = runs(&world, "main", "FPFP").await?;
    assert_eq!(state(&world, &last).await?, CaseState::Enabled);
    let last = runs(&world, "main", "FPF").await?;
    assert_eq!(state(&world, &last).await?, CaseState::Muted);
    assert_eq!(world.differences().await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_broken_test_is_never_muted_and_a_flaky_one_only_until_it_breaks() -> Result<()> {
    use MonitorActionKind::{Broken, Muted};
    let world = World::new().await?;
    let rate = MonitorInput {
        measure: MonitorMeasure::FailureRate.into(),
        threshold: 10.0,
        ..recoveries()
    };
    let monitor = create(&world, rate).await?;
    let last = runs(&world, "main", "PPPPFFFFFFF").await?;
    assert_eq!(state(&world, &last).await?, CaseState::Enabled);
    assert!(actions(&world, &monitor).await?.is_empty());

    let last = runs(&world, "main", "PFPFPF").await?;
    assert_eq!(state(&world, &last).await?, CaseState::Muted);
    let last = runs(&world, "main", "FF").await?;
    assert_eq!(state(&world, &last).await?, CaseState::Enabled);
    assert_eq!(kinds(&world, &monitor).await?, [Muted, Broken]);
    let reason = &actions(&world, &monitor).await?[1].reason;
    assert_eq!(reason, "failed in its last 3 runs, so it is broken");
    Ok(())
}

#[tokio::test]
async fn a_dry_run_and_a_notification_change_no_state() -> Result<()> {
    use MonitorActionKind::{Notified, Recovered, Skipped};
    let world = World::new().await?;
    let (skip, notify) = (AlarmAction::Skip.into(), AlarmAction::Notify.into());
    let dry = MonitorInput {
        name: "Dry".to_owned(),
        runs: Some(20),
        action: skip,
        dry_run: true,
        ..recoveries()
    };
    let retries = MonitorInput {
        name: "Retries".to_owned(),
        measure: MonitorMeasure::PassOnRetry.into(),
        threshold: 1.0,
        action: notify,
        ..recoveries()
    };
    let (dry, retries) = (create(&world, dry).await?, create(&world, retries).await?);

    let last = runs(&world, "main", "PFPFPFFRRPPP").await?;

    assert_eq!(state(&world, &last).await?, CaseState::Enabled);
    assert_eq!(kinds(&world, &dry).await?, [Skipped, Recovered]);
    assert!(actions(&world, &dry).await?.iter().all(|action| action.is_dry));
    assert_eq!(kinds(&world, &retries).await?, [Notified, Recovered]);
    let events = world.events().await?.into_iter();
    let events: Vec<_> = events.filter(|(name, _)| name.starts_with("monitor.")).collect();
    let names: Vec<_> = events.iter().map(|(name, _)| name.as_str()).collect();
    let expected = ["monitor.created", "monitor.created", "monitor.alarmed", "monitor.recovered"];
    assert_eq!(names, expected);
    assert_eq!(events[2].1["TargetId"], case_of(&last, "a"));

    // Once it acts, it begins again.
    let real = MonitorInput { dry_run: false, ..recoveries() };
    update(&world, &dry, real, "DryRun").await?;
    let last = runs(&world, "main", "F").await?;
    assert_eq!(state(&world, &last).await?, CaseState::Skipped);
    Ok(())
}

#[tokio::test]
async fn monitors_respect_users_branches_and_outages() -> Result<()> {
    let world = World::new().await?;
    let project = ProjectInput { default_branch: Some("main".to_owned()), ..Default::default() };
    world.change_project(project, &["DefaultBranch"]).await?;
    let monitor = create(&world, MonitorInput { branch: None, ..recoveries() }).await?;
    let last = runs(&world, "feature", "PFPFPF").await?;
    assert_eq!(state(&world, &last).await?, CaseState::Enabled, "another branch");

    let a = case_of(&last, "a");
    set(&world, &a, CaseState::Skipped).await?;
    let last = runs(&world, "main", "PFPFPF").await?;
    assert_eq!(state(&world, &last).await?, CaseState::Skipped, "a user has set it");
    runs(&world, "main", "PPP").await?;
    assert_eq!(state(&world, &last).await?, CaseState::Skipped);
    enable(&world, &a).await?;
    let last = runs(&world, "main", "F").await?;
    assert_eq!(state(&world, &last).await?, CaseState::Muted);
    enable(&world, &a).await?;
    let last = runs(&world, "main", "PF").await?;
    assert_eq!(state(&world, &last).await?, CaseState::Enabled, "a user knows better");
    assert_eq!(actions(&world, &monitor).await?.len(), 1);

    let other = World::new().await?;
    let monitor = create(&other, recoveries()).await?;
    runs(&other, "main", "PFPFP").await?;
    let many = (0..12).flat_map(|nr| result(&format!("t{nr}"), 'F'));
    let outage: Vec<_> = result("a", 'F').into_iter().chain(many).collect();
    run(&other, "main", json!(outage)).await?;
    roll_up(&other.db).await?;
    evaluate_monitors(&other.db).await?;
    assert!(actions(&other, &monitor).await?.is_empty());
    assert_eq!(other.count("select count(*) from monitor_evaluation").await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_slow_test_is_noticed_by_its_duration() -> Result<()> {
    let world = World::new().await?;
    let slow = MonitorInput {
        measure: MonitorMeasure::Duration.into(),
        threshold: 5.0,
        action: AlarmAction::Skip.into(),
        ..recoveries()
    };
    let monitor = create(&world, slow).await?;
    for seconds in [1, 6, 6, 6, 6, 6] {
        let mut result = passed("a");
        result["DurationInSec"] = json!(seconds);
        let last = run(&world, "main", json!([result])).await?;
        roll_up(&world.db).await?;
        evaluate_monitors(&world.db).await?;
        if seconds == 1 {
            assert_eq!(state(&world, &last).await?, CaseState::Enabled);
        }
    }
    let reason = actions(&world, &monitor).await?.remove(0).reason;
    assert_eq!(reason, "took 6.0 s in the median of its last 5 runs");
    Ok(())
}

#[tokio::test]
async fn monitors_are_created_changed_and_deleted() -> Result<()> {
    let world = World::new().await?;
    let monitor = create(&world, MonitorInput { runs: None, ..recoveries() }).await?;
    assert_eq!((monitor.runs, monitor.recover_after), (20, 3));
    for (field, input) in [
        ("Name", MonitorInput { name: String::new(), ..recoveries() }),
        ("Measure", MonitorInput { measure: 0, ..recoveries() }),
        ("Action", MonitorInput { action: 0, ..recoveries() }),
        ("Runs", MonitorInput { runs: Some(51), ..recoveries() }),
        ("Threshold", MonitorInput { threshold: 0.0, ..recoveries() }),
        ("Threshold", MonitorInput { threshold: 1e300, ..recoveries() }),
        ("RecoverAfter", MonitorInput { recover_after: Some(0), ..recoveries() }),
        ("Branch", MonitorInput { branch: Some("x".repeat(256)), ..recoveries() }),
    ] {
        assert_eq!(fields(&create(&world, input).await.unwrap_err()), [field]);
    }
    let changed =
        update(&world, &monitor, MonitorInput { threshold: 4.0, ..recoveries() }, "Threshold");
    let changed = changed.await?;
    assert_eq!((changed.threshold, changed.name.as_str()), (4.0, "Flaky tests"));
    let stale = update(&world, &monitor, recoveries(), "Threshold").await.unwrap_err();
    assert_eq!(stale.code(), Code::Aborted);
    assert_eq!(list(&world).await?, ["Flaky tests"]);

    let (project_id, id) = (world.project.clone(), monitor.id);
    let get = GetMonitorRequest { project_id: project_id.clone(), id: id.clone() };
    let stranger = world.stranger().await;
    let unknown = world.monitors().get_monitor(stranger.call(get.clone())).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    let delete = DeleteMonitorRequest { project_id, id };
    let denied = world.monitors().delete_monitor(world.user.call(delete.clone())).await;
    assert_eq!(denied.unwrap_err().code(), Code::PermissionDenied);
    world.monitors().delete_monitor(reviewer(&world).await.call(delete)).await?;
    let gone = world.monitors().get_monitor(world.user.call(get)).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);

    let others = "insert into monitor (customer_id, id, project_id, name, measure, runs, threshold,
                      branch, action, recover_after, dry_run, created_by_id, created_by)
                  select customer_id, gen_random_uuid(), project_id, n::text, 'Recoveries', 5, 1, '',
                         'Mute', 1, true, request_user_id, ''
                  from execution cross join generate_series(1, 50) as n";
    run(&world, "main", json!([passed("a")])).await?;
    world.change(others).await?;
    let refused = create(&world, recoveries()).await.unwrap_err();
    assert!(refused.message().contains("50 monitors"), "{refused}");
    Ok(())
}
