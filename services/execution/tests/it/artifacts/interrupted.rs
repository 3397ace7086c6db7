//! Uploads of artifacts that are interrupted.

use anyhow::Result;
use assay_proto::execution::{UploadArtifactRequest, UploadArtifactTarget};
use futures::{StreamExt, stream};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::world::World;

#[tokio::test]
async fn files_of_interrupted_uploads_are_removed() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    for _ in 0..2 {
        world.upload_file(&execution.id, "run.log").await?;
    }
    assert_eq!(world.files(), 1);
    assert_eq!(world.count("select count(*) from stray_file").await?, 0);
    // One upload was killed before it stored the file, one afterwards; one is still running.
    for (age, is_stored) in [("2 hours", false), ("2 hours", true), ("1 minute", true)] {
        let id = Uuid::now_v7();
        if is_stored {
            world.store_stray_file(&execution.id, id)?;
        }
        sqlx::query(
            "insert into stray_file (customer_id, execution_id, artifact_id, since)
             values ($1, $2::uuid, $3, now() - $4::interval)",
        )
        .bind(world.user.customer)
        .bind(&execution.id)
        .bind(id)
        .bind(age)
        .execute(&world.db)
        .await?;
    }

    assay_execution::purge_deleted(&world.db, world.artifacts_store()).await?;

    assert_eq!((world.files(), world.count("select count(*) from stray_file").await?), (2, 1));
    Ok(())
}

#[tokio::test]
async fn an_upload_is_recorded_before_its_file_is_stored() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    let target = UploadArtifactTarget {
        project_id: world.project.clone(),
        execution_id: execution.id.clone(),
        name: "slow.log".to_owned(),
        ..UploadArtifactTarget::default()
    };
    let head = UploadArtifactRequest {
        target: Some(target),
        chunk: "x".into(),
        ..UploadArtifactRequest::default()
    };
    let slow = world.user.call(stream::iter([head]).chain(stream::pending()));
    let mut artifacts = world.artifacts();
    let mut upload = JoinSet::new();
    upload
        .spawn(async move { artifacts.upload_artifact(slow).await?.into_inner().message().await });
    let recorded = "select count(*) from stray_file";
    let is_recorded = async || (world.count(recorded).await.ok()? == 1).then_some(());
    assay_testkit::eventually("a record of the upload", is_recorded).await;
    upload.abort_all();
    Ok(())
}
