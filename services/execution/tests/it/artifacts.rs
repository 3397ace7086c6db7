//! Files that belong to results: kept, named by results, and reached by links that expire.

use anyhow::Result;
use assay_proto::execution::{
    Artifact, DownloadArtifactRequest, Instance, UploadArtifactRequest, UploadArtifactTarget,
};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::json;
use tokio::task::JoinSet;
use tonic::{Code, Request, Status};
use url::Url;
use uuid::Uuid;

use crate::world::{World, fields, now, reason};

/// Uploads a file in pieces; one that breaks off does not say that it is complete.
async fn upload(
    world: &World,
    execution: &str,
    name: &str,
    content_type: &str,
    file: &[u8],
    whole: bool,
) -> Result<Artifact, Status> {
    let target = UploadArtifactTarget {
        project_id: world.project.clone(),
        execution_id: execution.to_owned(),
        lease_id: String::new(),
        name: name.to_owned(),
        content_type: content_type.to_owned(),
    };
    let head = UploadArtifactRequest { target: Some(target), ..Default::default() };
    let pieces = file
        .chunks(100_000)
        .map(|chunk| UploadArtifactRequest { chunk: chunk.to_vec().into(), ..Default::default() });
    let end = UploadArtifactRequest { last: true, ..Default::default() };
    let messages: Vec<_> = [head].into_iter().chain(pieces).chain(whole.then_some(end)).collect();
    let request = world.user.call(stream::iter(messages));
    Ok(world.artifacts().upload_artifact(request).await?.into_inner())
}

/// What a link asks for.
fn asked(link: &str) -> DownloadArtifactRequest {
    let link = Url::parse(link).unwrap();
    let parameter =
        |name: &str| link.query_pairs().find(|(key, _)| key == name).unwrap().1.into_owned();
    let mut path = link.path_segments().unwrap().skip(2).map(str::to_owned);
    DownloadArtifactRequest {
        id: path.next().unwrap(),
        name: path.next().unwrap(),
        customer_id: parameter("customer"),
        expires: parameter("expires").parse().unwrap(),
        signature: parameter("signature"),
    }
}

/// Whoever has the link reads the file, without a token.
async fn download(
    world: &World,
    request: DownloadArtifactRequest,
) -> Result<(String, Vec<u8>), Status> {
    let file = world.artifacts().download_artifact(Request::new(request)).await?.into_inner();
    let parts: Vec<_> = file.try_collect().await?;
    let bytes: Vec<u8> = parts.iter().flat_map(|part| part.chunk.to_vec()).collect();
    assert_eq!(parts[0].size, i64::try_from(bytes.len()).unwrap());
    Ok((parts[0].content_type.clone(), bytes))
}

async fn instance(world: &World, report: &str) -> Result<Instance> {
    let report = world.test_report(report).await?;
    let entry = world.instances(&report).await?.remove(0);
    let path = world.instance_path(&report, &entry.id);
    Ok(world.reports().get_instance(world.user.call(path)).await?.into_inner())
}

#[tokio::test]
async fn results_name_what_was_uploaded_and_show_links_to_it() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    let log: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let kept = upload(&world, &execution.id, "run.log", "text/html", &log, true).await?;
    assert_eq!((kept.name.as_str(), kept.size), ("run.log", 12_000_000));
    upload(&world, &execution.id, "shot-1.png", "image/png", b"PNG", true).await?;
    let results = json!([{
        "Identifier": "a", "Result": "Failed", "ExecutionLogUri": "run.log",
        "DebugLogUri": "never-uploaded.log", "ReportUri": "https://ci.example/7",
        "Steps": [{ "StepNr": 1, "Result": "Failed", "DurationInSec": 1, "Thumbnail": "shot-1.png",
                    "Screenshots": ["missing.png", "shot-1.png", "https://ci.example/1.png"] }],
    }]);
    world.report(&execution.id, results).await?;

    let instance = instance(&world, &execution.test_reports[0].id).await?;

    assert!(instance.execution_log_uri.starts_with("https://assay.test/api/artifacts/"));
    let (content_type, file) = download(&world, asked(&instance.execution_log_uri)).await?;
    assert!(file == log, "another file");
    assert_eq!(content_type, "application/octet-stream", "what could run is not served as such");
    assert_eq!(instance.debug_log_uri, "", "nothing was stored under that name");
    assert_eq!(instance.report_uri, "https://ci.example/7");
    let step = &instance.steps[0];
    assert_eq!(step.screenshots.len(), 2);
    assert_eq!(step.screenshots[1], "https://ci.example/1.png");
    assert_eq!(step.screenshots[0], step.thumbnail);
    let shot = download(&world, asked(&step.thumbnail)).await?;
    assert_eq!(shot, ("image/png".to_owned(), b"PNG".to_vec()));
    assert_eq!(download(&world, asked(&kept.uri)).await?.1, log);
    Ok(())
}

#[tokio::test]
async fn a_link_that_was_changed_leads_nowhere() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    let one = asked(&upload(&world, &execution.id, "a.txt", "", b"a", true).await?.uri);
    let other = asked(&upload(&world, &execution.id, "b.txt", "", b"b", true).await?.uri);
    download(&world, one.clone()).await?;

    for forged in [
        DownloadArtifactRequest { expires: one.expires + 1, ..one.clone() },
        DownloadArtifactRequest { expires: 0, ..one.clone() },
        DownloadArtifactRequest { id: other.id.clone(), ..one.clone() },
        DownloadArtifactRequest { name: "c.txt".to_owned(), ..one.clone() },
        DownloadArtifactRequest { customer_id: world.project.clone(), ..one.clone() },
        DownloadArtifactRequest { signature: other.signature.clone(), ..one.clone() },
        DownloadArtifactRequest { signature: String::new(), ..one.clone() },
        DownloadArtifactRequest { id: "../../etc/passwd".to_owned(), ..one.clone() },
    ] {
        let refused = download(&world, forged.clone()).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied, "{forged:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_second_file_of_the_same_name_takes_the_place_of_the_first() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    let first = upload(&world, &execution.id, "a.txt", "text/plain", b"one", true).await?;
    let second = upload(&world, &execution.id, "a.txt", "text/plain", b"two", true).await?;

    assert_eq!(download(&world, asked(&second.uri)).await?.1, b"two");
    let gone = download(&world, asked(&first.uri)).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
    assert_eq!(world.count("select count(*) from artifact").await?, 1);
    assert_eq!(world.files(), 1);
    // Executions do not share names.
    let other = world.start().await?;
    upload(&world, &other.id, "a.txt", "text/plain", b"three", true).await?;
    assert_eq!(download(&world, asked(&second.uri)).await?.1, b"two");
    Ok(())
}

#[tokio::test]
async fn what_is_refused_leaves_nothing_behind() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    for name in ["", "..", "../x", "a/b", ".hidden", "ä", "a b"] {
        let refused = upload(&world, &execution.id, name, "", b"x", true).await.unwrap_err();
        assert_eq!(fields(&refused), ["name"], "{name:?}");
    }
    let broken = vec![0; 300_000];
    let broken = upload(&world, &execution.id, "a", "", &broken, false).await.unwrap_err();
    assert_eq!(reason(&broken), "malformed");
    let large = vec![0; (32 << 20) + 1];
    let large = upload(&world, &execution.id, "a", "", &large, true).await.unwrap_err();
    assert_eq!(reason(&large), "too_large");
    let unknown = upload(&world, &world.set, "a", "", b"x", true).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    sqlx::query("update execution set mode = 'Dispatch'").execute(&world.db).await?;
    let dispatched = upload(&world, &execution.id, "a", "", b"x", true).await.unwrap_err();
    assert_eq!(reason(&dispatched), "not_external");
    sqlx::query("update execution set mode = 'External', expired_at = now()")
        .execute(&world.db)
        .await?;
    let late = upload(&world, &execution.id, "a", "", b"x", true).await.unwrap_err();
    assert_eq!(late.code(), Code::NotFound);

    assert_eq!(world.count("select count(*) from artifact").await?, 0);
    assert_eq!(world.files(), 0);
    Ok(())
}

/// What an engine uploads for its lease.
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
    Ok(world.artifacts().upload_artifact_of_lease(request).await?.into_inner())
}

#[tokio::test]
async fn engines_upload_what_belongs_to_their_work() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1)]).await?;
    let execution = world.dispatch().await?;
    let engine = world.engine();
    let leases = engine.lease(now("", 2)).await?;
    for (lease, file) in leases.iter().zip(["of a", "of b"]) {
        // Both call it the same.
        upload_for_lease(&world, &lease.id, "run.log", file).await?;
        let result = json!([{ "InstanceNr": 1, "Result": "Passed", "DurationInSec": 1,
                              "ExecutionLogUri": "run.log" }]);
        engine.report(&lease.id, result).await?;
    }
    for (report, file) in execution.test_reports.iter().zip(["of a", "of b"]) {
        let link = instance(&world, &report.id).await?.execution_log_uri;
        assert_eq!(download(&world, asked(&link)).await?.1, file.as_bytes());
    }
    Ok(())
}

#[tokio::test]
async fn an_engine_that_was_given_up_uploads_nothing_more() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    world.dispatch().await?;
    let lost = world.engine().lease_one().await?;
    sqlx::query("update lease set expires_at = now()").execute(&world.db).await?;

    let refused = upload_for_lease(&world, &lost.id, "run.log", "late").await.unwrap_err();

    assert_eq!(reason(&refused), "lease_lost");
    let unknown = upload_for_lease(&world, &world.set, "run.log", "x").await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    assert_eq!(world.files(), 0);
    Ok(())
}

#[tokio::test]
async fn files_that_a_killed_program_left_behind_are_removed() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    for _ in 0..2 {
        world.keep_file(&execution.id, "run.log").await?;
    }
    assert_eq!(world.files(), 1);
    assert_eq!(world.count("select count(*) from stray_file").await?, 0);
    // One program ended before it had stored the file, one before it had noted it, one is at it.
    for (age, is_stored) in [("2 hours", false), ("2 hours", true), ("1 minute", true)] {
        let id = Uuid::now_v7();
        if is_stored {
            world.leave_file(&execution.id, id)?;
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
async fn a_file_is_noted_before_it_is_stored() -> Result<()> {
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
    upload.spawn(async move { artifacts.upload_artifact(slow).await.map(drop) });
    let noted = "select count(*) from stray_file";
    let is_noted = async || (world.count(noted).await.ok()? == 1).then_some(());
    assay_testkit::eventually("that the file is noted", is_noted).await;
    upload.abort_all();
    Ok(())
}
