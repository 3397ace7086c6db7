//! Limits on what the clients of a customer leave behind.

use anyhow::Result;
use assay_execution::{QuotaConfig, list_usage, purge_deleted};
use assay_proto::execution::{
    AddLaunchEntryRequest, AddedLaunchEntry, LaunchEntryKind, UploadArtifactRequest,
    UploadArtifactTarget, artifact_service_client::ArtifactServiceClient,
};
use assay_rpc::grpc::Channel;
use assay_testkit::{TestUser, eventually};
use futures::{FutureExt, StreamExt, channel::oneshot, future, stream};
use serde_json::json;
use tokio::task::JoinSet;
use tonic::{Code, Status};
use uuid::Uuid;

use crate::world::{Server, World, reason};

/// Whether the counted sizes of all customers are the stored ones: of requests, artifacts and keys. Files of launches
/// are requests, and become artifacts.
const COUNTED: &str = "
    select coalesce((select sum(octet_length(body)) from launch_request), 0)::bigint
         = coalesce((select sum(bytes) from usage where kind = 'staged'), 0)::bigint
       and coalesce((select sum(size) from artifact), 0)::bigint
         + coalesce((select sum(octet_length(body)) from launch_request where kind = 'File'), 0)::bigint
         = coalesce((select sum(bytes) from usage where kind = 'artifacts'), 0)::bigint
       and coalesce((select sum(octet_length(digest)) from upload), 0)::bigint
         + coalesce((select sum(octet_length(idempotency_key) + octet_length(idempotent_request))
                     from execution), 0)::bigint
         = coalesce((select sum(bytes) from usage where kind = 'keys'), 0)::bigint";

async fn is_counted(world: &World) -> Result<bool> {
    Ok(sqlx::query_scalar(COUNTED).fetch_one(&world.db).await?)
}

/// Stages a request of about this size for a launch.
async fn stage(
    world: &World,
    user: &TestUser,
    launch: &str,
    size: usize,
) -> Result<AddedLaunchEntry, Status> {
    let body = json!({ "name": "x".repeat(size), "type": "STEP", "launchUuid": launch });
    let kind = LaunchEntryKind::Start.into();
    let request = AddLaunchEntryRequest { kind, item_id: None, body: body.to_string().into() };
    let added = world.launch_service().add_launch_entry(user.call(request)).await?;
    Ok(added.into_inner())
}

#[tokio::test]
async fn requests_of_launches_are_refused_at_the_limit_until_their_results_are_stored() -> Result<()>
{
    let world = World::with_quota(QuotaConfig { staged_mib: 1, ..Default::default() }).await?;
    let launch = world.start_launch("Nightly").await?;
    stage(&world, &world.user, &launch.id, 600 << 10).await?;
    let refused = stage(&world, &world.user, &launch.id, 600 << 10).await.unwrap_err();
    assert_eq!((refused.code(), &*reason(&refused)), (Code::InvalidArgument, "quota_exceeded"));
    assert!(refused.message().contains("1 MiB of requests of launches"), "{refused:?}");

    // Another customer is not concerned, and the launch can be finished.
    let other = world.stranger().await;
    stage(&world, &other, &Uuid::now_v7().to_string(), 600 << 10).await?;
    launch.finish().await?;
    world.close_launches().await?;
    world.forget_requests().await?;
    assert!(is_counted(&world).await?);
    eventually("space", || async {
        let launch = Uuid::now_v7().to_string();
        stage(&world, &world.user, &launch, 600 << 10).await.ok()
    })
    .await;
    Ok(())
}

#[tokio::test]
async fn files_are_refused_at_the_limit_until_others_are_removed() -> Result<()> {
    let world = World::with_quota(QuotaConfig { artifacts_gib: 1, ..Default::default() }).await?;
    world.include(&[("a", 1)]).await?;
    let [full, other] = [world.start().await?, world.start().await?];
    world.upload_file(&full.id, "run.log").await?;
    let large =
        "insert into artifact (customer_id, id, execution_id, owner_id, name, content_type, size)
                 select customer_id, gen_random_uuid(), id, id, 'video', 'video/mp4', 1 << 30
                 from execution order by id limit 1";
    world.change(large).await?;
    let refused = eventually("a refusal", || async {
        world.upload_file(&other.id, &Uuid::now_v7().to_string()).await.err()
    })
    .await;
    assert_eq!(reason(&refused), "quota_exceeded");
    let report = world.report(&other.id, json!([{ "Identifier": "a", "Result": "Passed" }])).await;
    report.expect("results without files are accepted");

    world.change("delete from artifact where name = 'video'").await?;
    eventually("space", || async { world.upload_file(&other.id, "run.log").await.ok() }).await;
    assert!(is_counted(&world).await?);
    Ok(())
}

/// Uploads of unknown size cannot exceed the limit together, whichever replica receives them.
#[tokio::test]
async fn a_file_reserves_room_before_it_is_stored() -> Result<()> {
    let world = World::with_quota(QuotaConfig { artifacts_gib: 1, ..Default::default() }).await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    let message = |name: &str, chunk: Vec<u8>| {
        let target = UploadArtifactTarget {
            project_id: world.project.clone(),
            execution_id: execution.id.clone(),
            name: name.to_owned(),
            ..UploadArtifactTarget::default()
        };
        UploadArtifactRequest {
            target: Some(target),
            chunk: chunk.into(),
            ..UploadArtifactRequest::default()
        }
    };
    // 20 MiB are left. A file of unknown size reserves 16 MiB at once.
    let large =
        "insert into artifact (customer_id, id, execution_id, owner_id, name, content_type, size)
                 select customer_id, gen_random_uuid(), id, id, 'video', 'video/mp4',
                        (1 << 30) - (20 << 20)
                 from execution limit 1";
    world.change(large).await?;
    let (sender, end) = oneshot::channel::<()>();
    let rest = end.into_stream().filter_map(|_| future::ready(None));
    let request = world.user.call(stream::iter([message("slow.log", b"x".to_vec())]).chain(rest));
    let mut artifacts = world.artifacts();
    let mut upload = JoinSet::new();
    upload.spawn(
        async move { artifacts.upload_artifact(request).await?.into_inner().message().await },
    );
    let replica = Server::start(&world)?;
    let replica = ArtifactServiceClient::new(replica.connect());
    let send = async |mut artifacts: ArtifactServiceClient<Channel>| {
        let last = UploadArtifactRequest { last: true, ..UploadArtifactRequest::default() };
        // Larger than what is left, and smaller than without the other file.
        let rest = (0..5).map(|_| UploadArtifactRequest {
            chunk: vec![0; 1 << 20].into(),
            ..UploadArtifactRequest::default()
        });
        let messages = std::iter::once(message("large.log", Vec::new())).chain(rest).chain([last]);
        let request = world.user.call(stream::iter(messages.collect::<Vec<_>>()));
        artifacts.upload_artifact(request).await?.into_inner().message().await
    };
    let claimed = "select coalesce(sum(size), 0)::bigint from stray_file";
    let has_room = async || (world.count(claimed).await.ok()? == 16 << 20).then_some(());
    eventually("the room of the upload", has_room).await;
    let refused = async || {
        // The replica may not be ready yet.
        let refused = send(replica.clone()).await.err();
        refused.filter(|status| reason(status) == "quota_exceeded")
    };
    eventually("a refusal", refused).await;
    assert_eq!(reason(&send(world.artifacts()).await.unwrap_err()), "quota_exceeded");
    drop(sender);
    upload.join_next().await.expect("an upload")?.expect_err("its body breaks off");
    let freed = async || send(replica.clone()).await.ok();
    eventually("the room of the upload that has gone", freed).await;
    let gone =
        async || (world.count("select count(*) from stray_file").await.ok()? == 0).then_some(());
    eventually("the end of the upload that has gone", gone).await;
    Ok(())
}

#[tokio::test]
async fn a_customer_has_a_limited_number_of_executions_that_have_not_ended() -> Result<()> {
    let world = World::with_quota(QuotaConfig { open_executions: 2, ..Default::default() }).await?;
    world.include(&[("a", 1)]).await?;
    let first = world.start().await?;
    world.dispatch().await?;
    let refused = world.start().await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert_eq!(reason(&refused), "too_many_open_executions");
    assert!(refused.message().contains("2 executions that have not ended"), "{refused:?}");
    let refused = world.start_launch("Nightly").await.err().expect("a launch is an execution");
    assert_eq!(reason(&refused), "too_many_open_executions");

    world.complete(&first.id).await?;
    eventually("an execution", || async { world.start().await.ok() }).await;
    Ok(())
}

#[tokio::test]
async fn requests_with_further_idempotency_keys_are_refused_at_the_limit() -> Result<()> {
    let world = World::with_quota(QuotaConfig { keys_mib: 1, ..Default::default() }).await?;
    world.include(&[("a", 1)]).await?;
    let request = |key: &str| {
        let mut request = world.start_request(assay_proto::execution::ExecutionMode::External);
        request.idempotency_key = Some(key.to_owned());
        request
    };
    let first = world.start_by(request("first")).await?;
    world.change("insert into usage select customer_id, 'keys', 1 << 20 from execution").await?;
    let refused = eventually("a refusal", || async {
        world.start_by(request(&Uuid::now_v7().to_string())).await.err()
    })
    .await;
    assert_eq!(reason(&refused), "quota_exceeded");
    let repeated = world.start_by(request("first")).await?;
    assert_eq!(repeated.id, first.id, "a known key is found");
    world.start().await.expect("an execution without a key");
    Ok(())
}

#[tokio::test]
async fn usage_is_what_is_stored_whatever_happens() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    for name in ["one", "two", "one"] {
        world.upload_file(&execution.id, name).await?;
    }
    let launch = world.start_launch("Nightly").await?;
    let pays = launch.test("pays", "PASSED").await?;
    launch.file(&pays, "picture", "a picture").await?;
    launch.test("ships", "FAILED").await?;
    assert!(is_counted(&world).await?);
    let mut shown = Vec::new();
    list_usage(&world.db, |usage| shown.push(usage.clone())).await?;
    let [usage] = &shown[..] else { panic!("one customer: {shown:?}") };
    assert_eq!((usage.artifacts, usage.open_executions), (2 + 9, 2));
    assert!(usage.staged > 0);

    launch.finish().await?;
    world.close_launches().await?;
    assert!(is_counted(&world).await?);
    world.forget_requests().await?;
    assert!(is_counted(&world).await?);
    world
        .change(
            "insert into deletion (customer_id, project_id)
                  select customer_id, project_id from execution limit 1",
        )
        .await?;
    purge_deleted(&world.db, world.artifacts_store()).await?;
    assert!(is_counted(&world).await?);
    assert_eq!(world.count("select coalesce(sum(bytes), 0)::bigint from usage").await?, 0);
    Ok(())
}
