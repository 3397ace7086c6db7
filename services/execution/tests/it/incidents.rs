//! Incidents: failures of many tests that are evidence about their environment.

mod many;
mod order;
mod series;

use anyhow::Result;
use assay_execution::seek_incidents;
use assay_proto::{
    Batch,
    execution::{
        Execution, GetIncidentRequest, Incident, IncidentEntry, IncidentKind, ListIncidentsRequest,
        OpenExecutionInput, VerdictState, incident_service_client::IncidentServiceClient,
    },
};
use assay_rpc::grpc::Channel;
use assay_testkit::TestUser;
use futures::TryStreamExt;
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::{
    changes::{failed, passed, reports, summary},
    judgement::verdict,
    known_failures::{create, in_days},
    world::World,
};

fn incidents_of(world: &World) -> IncidentServiceClient<Channel> {
    IncidentServiceClient::new(world.execution.clone())
}

pub(crate) async fn list(world: &World) -> Result<Vec<IncidentEntry>, Status> {
    let (project_id, page) = (world.project.clone(), None);
    let request = ListIncidentsRequest { project_id, page };
    let batches = incidents_of(world).list_incidents(world.user.call(request)).await?;
    let batches: Vec<_> = batches.into_inner().try_collect().await?;
    Ok(batches.iter().flat_map(|batch| batch.parse().unwrap()).collect())
}

pub(crate) async fn get(world: &World, user: &TestUser, id: &str) -> Result<Incident, Status> {
    let request = GetIncidentRequest { project_id: world.project.clone(), id: id.to_owned() };
    Ok(incidents_of(world).get_incident(user.call(request)).await?.into_inner())
}

/// Runs tests of a set on the branch `main`, and seeks incidents.
pub(crate) async fn run(world: &World, set: &str, results: Value) -> Result<Execution> {
    run_on(world, set, "main", results).await
}

/// Runs tests of a set on a branch, and seeks incidents.
async fn run_on(world: &World, set: &str, branch: &str, results: Value) -> Result<Execution> {
    let execution = complete_on(world, set, branch, results).await?;
    seek_incidents(&world.db).await?;
    Ok(execution)
}

/// Runs tests of a set on a branch.
async fn complete_on(world: &World, set: &str, branch: &str, results: Value) -> Result<Execution> {
    let input = OpenExecutionInput {
        project: "Shop".to_owned(),
        test_set: set.to_owned(),
        branch: Some(branch.to_owned()),
        ..OpenExecutionInput::default()
    };
    let execution = world.open(input).await?;
    world.report(&execution.id, results).await?;
    Ok(world.complete(&execution.id).await?)
}

/// Seeks incidents in all executions again.
async fn seek_again(world: &World) -> Result<()> {
    world.change("insert into incident_search select customer_id, id from execution").await?;
    Ok(seek_incidents(&world.db).await?)
}

/// Returns the results of twelve tests of a set, which pass or fail with a message.
pub(crate) fn twelve(set: &str, message: &str) -> Value {
    let result = |nr| {
        let test = format!("{set} {nr}");
        if message.is_empty() { passed(&test) } else { failed(&test, message) }
    };
    (0..12).map(result).collect()
}

/// Returns the actions of the events of incidents.
async fn actions(world: &World) -> Result<Vec<String>> {
    let events = world.events().await?.into_iter();
    let of_incident =
        events.filter_map(|(name, _)| Some(name.strip_prefix("incident.")?.to_owned()));
    Ok(of_incident.collect())
}

#[tokio::test]
async fn an_outage_is_one_incident_until_its_set_runs_without_it() -> Result<()> {
    let world = World::new().await?;
    run(&world, "web", twelve("web", "")).await?;
    assert_eq!(list(&world).await?, []);
    let first = run(&world, "web", twelve("web", "10.0.0.7:5432 refused")).await?;
    let second = run(&world, "shop", twelve("shop", "no such host")).await?;
    let third = run(&world, "web", twelve("web", "no such host")).await?;

    let [open] = &list(&world).await?[..] else { panic!("not one incident") };
    assert_eq!((open.kind(), open.executions, open.test_sets), (IncidentKind::Outage, 3, 2));
    assert_eq!(open.headline, "10.0.0.7:5432 refused");
    assert_eq!((open.begun_at, open.last_seen_at), (first.request_time, third.request_time));
    assert_eq!((open.ended_at, open.ended_by_execution_id.as_deref()), (None, None));
    assert_eq!(actions(&world).await?, ["created"], "one event for 36 failures");
    assert_eq!(summary(&world, &second).await?.incident_id, Some(open.id.clone()));
    assert_eq!(verdict(&world, &second).await?.state(), VerdictState::Failed);
    assert_eq!(reports(&world, &second).await?.len(), 12, "the failures stay listed");

    let repaired = run(&world, "shop", twelve("shop", "")).await?;
    let ended = get(&world, &world.user, &open.id).await?;
    assert_eq!(ended.ended_at, repaired.completion_date_time);
    assert_eq!(ended.ended_by_execution_id, Some(repaired.id));
    let affected: Vec<_> = ended.affected.iter().map(|one| one.execution_id.as_str()).collect();
    assert_eq!(affected, [&third.id, &second.id, &first.id]);
    assert_eq!(ended.affected[1].test_set_name, "shop");
    assert_eq!(actions(&world).await?, ["created", "ended"]);
    Ok(())
}

#[tokio::test]
async fn seeking_again_changes_nothing() -> Result<()> {
    let world = World::new().await?;
    for message in ["", "refused", "", "refused"] {
        run(&world, "web", twelve("web", message)).await?;
    }
    assert_eq!(actions(&world).await?, ["created", "ended", "created"]);
    let before = list(&world).await?;
    seek_again(&world).await?;
    assert_eq!(list(&world).await?, before);
    assert_eq!(actions(&world).await?.len(), 3);
    assert_eq!(world.count("select count(*) from incident_search").await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_cause_in_most_test_sets_is_one_incident() -> Result<()> {
    let world = World::new().await?;
    let sets = ["web", "shop", "api", "app", "cli"];
    for set in sets {
        run(&world, set, json!([passed(&format!("{set} 1")), passed(&format!("{set} 2"))])).await?;
    }
    let broken = |set: &str| {
        json!([
            failed(&format!("{set} 1"), "503 from the identity provider"),
            passed(&format!("{set} 2"))
        ])
    };
    let mut affected = Vec::new();
    for set in ["web", "shop"] {
        affected.push(run(&world, set, broken(set)).await?.id);
    }
    assert_eq!(list(&world).await?, [], "two of five sets");
    affected.push(run(&world, "api", broken("api")).await?.id);
    let [open] = &list(&world).await?[..] else { panic!("not one incident") };
    assert_eq!((open.kind(), open.executions, open.test_sets), (IncidentKind::Cause, 3, 3));
    assert_eq!(open.headline, "503 from the identity provider");

    affected.push(run(&world, "web", broken("web")).await?.id);
    let with_other = json!([failed("app 2", "no paper"), passed("app 1")]);
    run(&world, "app", with_other).await?;
    let more = get(&world, &world.user, &open.id).await?;
    let found: Vec<_> = more.affected.iter().rev().map(|one| one.execution_id.clone()).collect();
    assert_eq!(found, affected, "it fails as before, and another cause is another matter");
    assert_eq!(more.ended_at, None, "app was not affected");

    run(&world, "shop", json!([passed("shop 1")])).await?;
    assert!(get(&world, &world.user, &open.id).await?.ended_at.is_some());
    assert_eq!(actions(&world).await?, ["created", "ended"]);
    seek_again(&world).await?;
    assert_eq!(list(&world).await?.len(), 1, "it was requested before the end");
    Ok(())
}

#[tokio::test]
async fn muted_failures_and_executions_of_the_past_begin_no_incident() -> Result<()> {
    let world = World::new().await?;
    let first = run(&world, "web", json!([failed("web 1", "refused")])).await?;
    let known = reports(&world, &first).await?.remove(0).fingerprint;
    let known = assay_proto::execution::CreateKnownFailureInput {
        fingerprint: known,
        every_case: true,
        muted_until: Some(in_days(1)),
        ..Default::default()
    };
    create(&world, known).await?;
    run(&world, "web", twelve("web", "refused")).await?;
    for set in ["shop", "api", "app"] {
        run(&world, set, json!([failed(set, "refused"), passed(&format!("{set} 2"))])).await?;
    }
    assert_eq!(list(&world).await?, []);

    let past = OpenExecutionInput {
        project: "Shop".to_owned(),
        test_set: "web".to_owned(),
        request_time: Some(in_days(-40)),
        ..OpenExecutionInput::default()
    };
    let past = world.open(past).await?;
    world.report(&past.id, twelve("web", "gone")).await?;
    world.complete(&past.id).await?;
    seek_incidents(&world.db).await?;
    assert_eq!(list(&world).await?, []);
    Ok(())
}

#[tokio::test]
async fn incidents_are_found_by_their_customer_only() -> Result<()> {
    let world = World::new().await?;
    run(&world, "web", twelve("web", "refused")).await?;
    let id = list(&world).await?.remove(0).id;
    let stranger = world.stranger().await;
    let refused = get(&world, &stranger, &id).await.unwrap_err();
    assert_eq!((refused.code(), refused.message()), (Code::NotFound, "no such project"));
    let engine = world.colleague("Execute").await;
    assert_eq!(get(&world, &engine, &id).await.unwrap_err().code(), Code::PermissionDenied);
    let missing = get(&world, &world.user, &world.project).await.unwrap_err();
    assert_eq!((missing.code(), missing.message()), (Code::NotFound, "no such incident"));
    Ok(())
}
