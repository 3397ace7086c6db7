//! The archive of executions.

use anyhow::Result;
use assay_proto::{
    Batch as _, Page,
    execution::{ExecutionInput, ListExecutionsRequest, UpdateExecutionRequest},
};
use futures::TryStreamExt;
use serde_json::json;
use tonic::{Code, Status};

use crate::world::{World, reason};

async fn update(world: &World, id: &str, change: UpdateExecutionRequest) -> Result<(), Status> {
    let request =
        UpdateExecutionRequest { project_id: world.project.clone(), id: id.to_owned(), ..change };
    world.executions().update_execution(world.user.call(request)).await?;
    Ok(())
}

fn archived(archived: bool) -> UpdateExecutionRequest {
    UpdateExecutionRequest {
        changes: Some(ExecutionInput { archived }),
        fields: vec!["Archived".to_owned()],
        ..UpdateExecutionRequest::default()
    }
}

async fn list(world: &World, set: bool, archived: Option<bool>) -> Result<Vec<String>> {
    let request = ListExecutionsRequest {
        project_id: world.project.clone(),
        test_set_id: set.then(|| world.set.clone()),
        page: Some(Page::default()),
        archived,
        filter: None,
    };
    let batches = world.executions().list_executions(world.user.call(request)).await?.into_inner();
    let batches: Vec<_> = batches.try_collect().await?;
    Ok(batches.into_iter().flat_map(|batch| batch.parse().unwrap()).map(|entry| entry.id).collect())
}

#[tokio::test]
async fn an_execution_can_be_archived_and_unarchived() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let (first, second) = (world.start().await?.id, world.start().await?.id);

    update(&world, &first, archived(true)).await?;

    for set in [false, true] {
        assert_eq!(list(&world, set, Some(false)).await?, [second.as_str()]);
        assert_eq!(list(&world, set, Some(true)).await?, [first.as_str()]);
        assert_eq!(list(&world, set, None).await?, [second.as_str(), first.as_str()]);
    }
    assert!(world.execution(&first).await?.archived);
    // An archived execution still accepts results.
    world.report(&first, json!([{ "Identifier": "a", "Result": "Passed" }])).await?;
    update(&world, &first, archived(false)).await?;
    assert!(list(&world, false, Some(true)).await?.is_empty());

    let events = world.events().await?;
    let moves = events.iter().filter(|(_, data)| data["Source"] == "Execution");
    let moves: Vec<_> = moves.map(|(subject, data)| (subject.as_str(), data)).collect();
    assert_eq!(
        moves.iter().map(|(subject, _)| *subject).collect::<Vec<_>>(),
        ["execution.archived", "execution.unarchived"]
    );
    assert_eq!(
        moves[0].1,
        &json!({ "Source": "Execution", "SourceId": first, "Target": "TestSet",
                 "TargetId": world.set, "Action": "Archived", "ProjectId": world.project,
                 "RecordVersion": "2", "Actor": moves[0].1["Actor"] })
    );
    Ok(())
}

#[tokio::test]
async fn archiving_rejects_stale_versions_and_unknown_executions() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    world.report(&execution.id, json!([{ "Identifier": "a", "Result": "Passed" }])).await?;
    let change = UpdateExecutionRequest {
        data_version: Some(execution.data_version.clone()),
        ..archived(true)
    };

    let stale = update(&world, &execution.id, change).await.unwrap_err();
    assert_eq!(reason(&stale), "stale_data_version");

    let missing = update(&world, &world.set, archived(true)).await.unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);
    let stranger = world.stranger().await;
    let request = UpdateExecutionRequest {
        project_id: world.project.clone(),
        id: execution.id.clone(),
        ..archived(true)
    };
    let hidden = world.executions().update_execution(stranger.call(request)).await.unwrap_err();
    assert_eq!(hidden.code(), Code::NotFound);
    assert!(!world.execution(&execution.id).await?.archived);
    Ok(())
}
