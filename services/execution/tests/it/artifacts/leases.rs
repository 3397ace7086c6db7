//! Artifacts that engines upload for their leases.

use anyhow::Result;
use assay_proto::execution::{Artifact, UploadArtifactRequest, UploadArtifactTarget};
use futures::stream;
use serde_json::json;
use tonic::{Code, Status};

use super::{download, instance, request_of};
use crate::world::{World, fields, now, reason};

/// Uploads a file for a lease.
async fn upload_for_lease(
    world: &World,
    lease: &str,
    name: &str,
    file: &'static str,
) -> Result<Artifact, Status> {
    let target = UploadArtifactTarget {
        lease_id: lease.to_owned(),
        name: name.to_owned(),
        ..UploadArtifactTarget::default()
    };
    let message = UploadArtifactRequest { target: Some(target), chunk: file.into(), last: true };
    let request = world.user.call(stream::iter([message]));
    let stored = world.artifacts().upload_artifact_of_lease(request).await?;
    Ok(stored.into_inner().message().await?.expect("the stored file"))
}

#[tokio::test]
async fn engines_upload_artifacts_for_their_leases() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1)]).await?;
    let execution = world.dispatch().await?;
    let engine = world.engine();
    let leases = engine.lease(now("", 2)).await?;
    let first = &leases[0].id;
    for reserved in ["live.log".to_owned(), format!("live-{first}.log")] {
        let refused = upload_for_lease(&world, first, &reserved, "x").await.unwrap_err();
        assert_eq!(fields(&refused), ["name"], "the live log would replace {reserved}");
    }
    for (lease, file) in leases.iter().zip(["of a", "of b"]) {
        // Names belong to one report.
        upload_for_lease(&world, &lease.id, "run.log", file).await?;
        let result = json!([{ "InstanceNr": 1, "Result": "Passed", "DurationInSec": 1,
                              "ExecutionLogUri": "run.log" }]);
        engine.report(&lease.id, result).await?;
    }
    for (report, file) in execution.test_reports.iter().zip(["of a", "of b"]) {
        let link = instance(&world, &report.id).await?.execution_log_uri;
        assert_eq!(download(&world, request_of(&link)).await?.1, file.as_bytes());
    }
    Ok(())
}

#[tokio::test]
async fn an_engine_cannot_upload_for_a_lost_lease() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    world.dispatch().await?;
    let lost = world.engine().lease_one().await?;
    sqlx::query("update lease set expires_at = now()").execute(&world.db).await?;
    world.reconcile().await?;

    let refused = upload_for_lease(&world, &lost.id, "run.log", "late").await.unwrap_err();

    assert_eq!(reason(&refused), "lease_lost");
    let unknown = upload_for_lease(&world, &world.set, "run.log", "x").await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    assert_eq!(world.files(), 0);
    Ok(())
}
