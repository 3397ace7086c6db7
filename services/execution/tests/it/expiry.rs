//! Events of known failures: their changes and their ends.

use anyhow::Result;
use assay_execution::publish_expired;
use assay_proto::execution::{
    CreateKnownFailureInput, DeleteKnownFailureRequest, KnownFailureInput, MuteInput, ReviewInput,
    UpdateKnownFailureRequest,
};
use serde_json::json;

use crate::{
    changes::{failed, reports, run},
    known_failures::{accepted, create, in_days, review, reviewer},
    world::World,
};

/// Returns the actions of the events of known failures, in order.
async fn actions(world: &World) -> Result<Vec<String>> {
    publish_expired(&world.db).await?;
    let events = world.events().await?.into_iter();
    let actions =
        events.filter_map(|(name, _)| name.strip_prefix("known_failure.").map(str::to_owned));
    Ok(actions.collect())
}

async fn mute_until(world: &World, id: &str, days: i64) -> Result<()> {
    let changes = KnownFailureInput { muted_until: Some(in_days(days)), ..Default::default() };
    let update = UpdateKnownFailureRequest {
        project_id: world.project.clone(),
        id: id.to_owned(),
        data_version: None,
        changes: Some(changes),
        fields: vec!["MutedUntil".to_owned()],
    };
    let request = reviewer(world).await.call(update);
    world.known_failures().update_known_failure(request).await?;
    Ok(())
}

#[tokio::test]
async fn changes_and_ends_of_a_known_failure_are_published() -> Result<()> {
    let world = World::new().await?;
    let execution = run(&world, "main", json!([failed("a", "lost")])).await?;
    let entry = reports(&world, &execution).await?.remove(0);
    let input = CreateKnownFailureInput {
        fingerprint: entry.fingerprint,
        every_case: true,
        muted_until: Some(in_days(30)),
        ..Default::default()
    };
    let known = create(&world, input).await?;
    assert_eq!(actions(&world).await?, ["created"]);
    let (_, data) = world.events().await?.into_iter().next_back().unwrap();
    let expected = json!({
        "Source": "KnownFailure", "SourceId": known.id, "Target": "Project",
        "TargetId": world.project, "Action": "Created", "ProjectId": world.project,
        "RecordVersion": "1", "Actor": data["Actor"],
    });
    assert_eq!(data, expected);
    assert_eq!(data["Actor"]["Kind"], "User");

    mute_until(&world, &known.id, 0).await?;
    assert_eq!(actions(&world).await?, ["created", "changed", "expired"]);
    assert_eq!(actions(&world).await?.len(), 3, "it ends once");
    mute_until(&world, &known.id, -1).await?;
    assert_eq!(actions(&world).await?[3..], ["changed"], "it had ended");
    mute_until(&world, &known.id, 1).await?;
    world.change("update known_failure set muted_until = now()").await?;
    assert_eq!(actions(&world).await?[4..], ["changed", "expired"], "it was muted again");

    let (project_id, id) = (world.project.clone(), known.id);
    let delete = DeleteKnownFailureRequest { project_id, id };
    world.known_failures().delete_known_failure(reviewer(&world).await.call(delete)).await?;
    assert_eq!(actions(&world).await?[6..], ["deleted"]);
    Ok(())
}

#[tokio::test]
async fn a_review_publishes_the_known_failures_that_it_makes() -> Result<()> {
    let world = World::new().await?;
    let results = json!([failed("a", "lost"), failed("b", "gone")]);
    let execution = run(&world, "main", results).await?;
    let known = MuteInput { muted_until: Some(in_days(7)), ..Default::default() };
    let [first, second] = &reports(&world, &execution).await?[..] else { panic!("two reports") };
    let of = |ids: &[&str]| ReviewInput {
        reports: ids.iter().map(ToString::to_string).collect(),
        known: Some(known),
        ..accepted()
    };

    review(&world, &execution, of(&[&first.id])).await?;
    review(&world, &execution, of(&[&first.id, &second.id])).await?;

    let mut published = actions(&world).await?;
    published[1..].sort();
    assert_eq!(published, ["created", "changed", "created"]);
    Ok(())
}
