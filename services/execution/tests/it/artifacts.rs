//! Artifacts: files that results refer to by name, and that signed links give access to.

mod interrupted;
mod leases;

use anyhow::Result;
use assay_proto::{
    catalog::FileRange,
    execution::{
        Artifact, DownloadArtifactRequest, Instance, UploadArtifactRequest, UploadArtifactTarget,
    },
};
use futures::{TryStreamExt, stream};
use serde_json::json;
use tonic::{Code, Request, Status};
use url::Url;

use crate::world::{World, fields, reason};

/// Uploads a file in chunks. An upload that is not `whole` lacks its last message.
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
        name: name.to_owned(),
        content_type: content_type.to_owned(),
        ..UploadArtifactTarget::default()
    };
    let head = UploadArtifactRequest { target: Some(target), ..Default::default() };
    let chunks = file
        .chunks(100_000)
        .map(|chunk| UploadArtifactRequest { chunk: chunk.to_vec().into(), ..Default::default() });
    let end = UploadArtifactRequest { last: true, ..Default::default() };
    let messages: Vec<_> = [head].into_iter().chain(chunks).chain(whole.then_some(end)).collect();
    world.send_artifact(stream::iter(messages)).await
}

/// Returns the request that a link stands for.
fn request_of(link: &str) -> DownloadArtifactRequest {
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
        ..DownloadArtifactRequest::default()
    }
}

/// Downloads a file without a token, and returns its content type and its content.
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
async fn instances_show_links_to_the_artifacts_that_results_name() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    let log: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let uploaded = upload(&world, &execution.id, "run.log", "text/html", &log, true).await?;
    assert_eq!((uploaded.name.as_str(), uploaded.size), ("run.log", 12_000_000));
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
    let (content_type, file) = download(&world, request_of(&instance.execution_log_uri)).await?;
    assert!(file == log, "the content differs");
    assert_eq!(content_type, "application/octet-stream", "HTML is not served as HTML");
    assert_eq!(instance.debug_log_uri, "", "no file has that name");
    assert_eq!(instance.report_uri, "https://ci.example/7");
    let step = &instance.steps[0];
    assert_eq!(step.screenshots.len(), 2);
    assert_eq!(step.screenshots[1], "https://ci.example/1.png");
    assert_eq!(step.screenshots[0], step.thumbnail);
    let shot = download(&world, request_of(&step.thumbnail)).await?;
    assert_eq!(shot, ("image/png".to_owned(), b"PNG".to_vec()));
    assert_eq!(download(&world, request_of(&uploaded.uri)).await?.1, log);
    Ok(())
}

#[tokio::test]
async fn a_range_of_an_artifact_is_returned_unless_it_is_of_another_one() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    let link = upload(&world, &execution.id, "run.webm", "video/webm", b"abcdef", true).await?.uri;
    let link = request_of(&link);
    let read = async |first: i64, if_id: Option<&str>, head_only: bool| {
        let range = Some(FileRange { first: Some(first), last: Some(3) });
        let if_id = if_id.map(str::to_owned);
        let request = DownloadArtifactRequest { range, if_id, head_only, ..link.clone() };
        let file = world.artifacts().download_artifact(Request::new(request)).await?.into_inner();
        let parts: Vec<_> = file.try_collect().await?;
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.chunk.to_vec()).collect();
        anyhow::Ok((parts[0].is_unsatisfiable, String::from_utf8(bytes)?))
    };
    for (first, if_id, head_only, expected) in [
        (2, None, false, (false, "cd")),
        (2, Some(link.id.as_str()), false, (false, "cd")),
        (2, Some("another"), false, (false, "abcdef")),
        (2, None, true, (false, "")),
        (6, None, false, (true, "")),
    ] {
        let (is_unsatisfiable, bytes) = read(first, if_id, head_only).await?;
        assert_eq!((is_unsatisfiable, bytes.as_str()), expected, "{first} {if_id:?} {head_only}");
    }
    Ok(())
}

#[tokio::test]
async fn forged_links_are_rejected() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    let one = request_of(&upload(&world, &execution.id, "a.txt", "", b"a", true).await?.uri);
    let other = request_of(&upload(&world, &execution.id, "b.txt", "", b"b", true).await?.uri);
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
async fn files_of_an_execution_that_has_ended_are_not_replaced() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let id = world.start().await?.id;
    let first = upload(&world, &id, "log.txt", "text/plain", b"one", true).await?;
    world.complete(&id).await?;
    let refused = upload(&world, &id, "log.txt", "text/plain", b"two", true).await.unwrap_err();
    assert_eq!(reason(&refused), "execution_ended");
    upload(&world, &id, "more.txt", "text/plain", b"two", true).await?;
    assert_eq!(download(&world, request_of(&first.uri)).await?.1, b"one");
    Ok(())
}

#[tokio::test]
async fn a_second_file_of_the_same_name_replaces_the_first() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    let first = upload(&world, &execution.id, "a.txt", "text/plain", b"one", true).await?;
    let second = upload(&world, &execution.id, "a.txt", "text/plain", b"two", true).await?;

    assert_eq!(download(&world, request_of(&second.uri)).await?.1, b"two");
    let replaced = download(&world, request_of(&first.uri)).await.unwrap_err();
    assert_eq!(replaced.code(), Code::NotFound);
    assert_eq!(world.count("select count(*) from artifact").await?, 1);
    assert_eq!(world.files(), 1);
    // Names belong to one execution.
    let other = world.start().await?;
    upload(&world, &other.id, "a.txt", "text/plain", b"three", true).await?;
    assert_eq!(download(&world, request_of(&second.uri)).await?.1, b"two");
    Ok(())
}

#[tokio::test]
async fn rejected_uploads_store_nothing() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    for name in ["", "..", "../x", "a/b", ".hidden", "ä", "a b"] {
        let refused = upload(&world, &execution.id, name, "", b"x", true).await.unwrap_err();
        assert_eq!(fields(&refused), ["name"], "{name:?}");
    }
    let bytes = vec![0; 300_000];
    let incomplete = upload(&world, &execution.id, "a", "", &bytes, false).await.unwrap_err();
    assert_eq!(reason(&incomplete), "malformed");
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
