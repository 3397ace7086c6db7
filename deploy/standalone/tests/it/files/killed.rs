//! Uploads to a catalog that is killed.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use assay_testkit::{Api, eventually};
use futures::{StreamExt, stream};
use reqwest::{Body, Method};
use secrecy::ExposeSecret;
use sqlx::{Connection, PgConnection};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::{download, resumable, upload};
use crate::{
    fleet::{Fleet, Replica},
    world::create_project,
};

/// Size of a chunk in bytes.
const CHUNK: usize = 1 << 20;

/// Lists all files below a folder.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.flat_map(|path| if path.is_dir() { files_in(&path) } else { vec![path] }).collect()
}

fn catalog(fleet: &mut Fleet) -> &mut Replica {
    let is_catalog = |replica: &&mut Replica| replica.name().contains("catalog");
    fleet.replicas.iter_mut().find(is_catalog).unwrap()
}

/// Starts the catalog again, and waits until the gateway has found it.
async fn restart(fleet: &mut Fleet, api: &Api, project: &str) {
    catalog(fleet).start();
    let catalog = &*catalog(fleet);
    eventually("the catalog", || async { catalog.is_ready().await.then_some(()) }).await;
    let reached = async || (api.get(project).await.status == 200).then_some(());
    eventually("the catalog behind the gateway", reached).await;
}

/// Sends so many chunks of a file, and then nothing more.
async fn send_beginning(api: &Api, project: &str, chunks: usize) -> reqwest::Result<u16> {
    let chunk = |n| Ok::<_, std::io::Error>(vec![u8::try_from(n).unwrap(); CHUNK]);
    let body = stream::iter((0..chunks).map(chunk)).chain(stream::pending());
    let request = api.request(Method::POST, &format!("{project}/files"));
    let request = request.header("X-File-Name", "killed.img").body(Body::wrap_stream(body));
    Ok(request.send().await?.status().as_u16())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_catalog_leaves_no_file_without_bytes_and_after_the_sweep_no_bytes_without_file() {
    let mut fleet = Fleet::start(&[None], &[]).await;
    let api = fleet.admins().await.remove(0);
    let project = create_project(&api).await;
    let folder = fleet.artifacts();
    for chunks in [0, 3, 24] {
        let before = files_in(&folder).len();
        let mut upload = JoinSet::new();
        upload.spawn({
            let (api, project) = (api.clone(), project.clone());
            async move { send_beginning(&api, &project, chunks).await }
        });
        eventually("an upload", || async { (files_in(&folder).len() > before).then_some(()) })
            .await;
        catalog(&mut fleet).kill().await;
        let status = upload.join_next().await.unwrap().unwrap();
        assert!(!status.as_ref().is_ok_and(|status| *status < 500), "{status:?}");
        restart(&mut fleet, &api, &project).await;
    }
    // Kills around the end of an upload: before, in and after its transaction.
    for delay in [1, 3, 6, 10, 15, 25, 40, 80] {
        let contents = vec![delay; 3 * CHUNK];
        let uploaded = upload_in_time(&api, &project, contents);
        let killed = async {
            sleep(Duration::from_millis(delay.into())).await;
            catalog(&mut fleet).kill().await;
        };
        tokio::join!(uploaded, killed);
        restart(&mut fleet, &api, &project).await;
    }
    eventually("an upload", || async {
        let kept = upload(&api, &project, "kept.img", "abc").await;
        (kept.status == 201).then_some(())
    })
    .await;

    let listed = api.get(&format!("{project}/files")).await.ok();
    for file in listed.as_array().unwrap() {
        let bytes = download(&api, file, &[]).await.expect(200).body.clone();
        assert_eq!(file["Size"], bytes.len());
    }
    check_bytes(&mut fleet, &api, &project).await;
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_continues_after_each_kill_of_the_catalog() {
    let mut fleet = Fleet::start(&[None], &[]).await;
    let api = fleet.admins().await.remove(0);
    let project = create_project(&api).await;
    // Three parts, and the joining of them.
    let bytes: Vec<u8> =
        (0..40_000_003_u32).map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    let upload = resumable::begun(&api, &project, bytes.len() as u64).await;
    for delay in [5, 20, 50, 100, 200, 300, 400] {
        let offset = resumable::offset(&api, &upload).await;
        let appended = append_in_time(&api, &upload, (&bytes, offset));
        let killed = async {
            sleep(Duration::from_millis(delay)).await;
            catalog(&mut fleet).kill().await;
        };
        tokio::join!(appended, killed);
        restart(&mut fleet, &api, &project).await;
        // A request that has died gives way after two minutes.
        let die = "update upload set written_at = now() - interval '1 hour'";
        sqlx::query(die).execute(&mut database(&fleet).await).await.unwrap();
    }
    let file = eventually("the end of the upload", || async {
        let offset = resumable::offset(&api, &upload).await;
        append_in_time(&api, &upload, (&bytes, offset)).await;
        api.get(&upload).await.ok()["FileId"].as_str().map(str::to_owned)
    })
    .await;
    let file = api.get(&format!("{project}/files/{file}")).await.ok();
    assert!(download(&api, &file, &[]).await.expect(200).body == bytes);
    check_bytes(&mut fleet, &api, &project).await;
    fleet.stop().await;
}

/// Appends the bytes that an upload lacks, unless the catalog is killed.
async fn append_in_time(api: &Api, upload: &str, (bytes, offset): (&[u8], u64)) {
    let rest = bytes[usize::try_from(offset).unwrap()..].to_vec();
    let request = resumable::appending(api, upload, offset).body(rest);
    let _ = timeout(Duration::from_secs(10), request.send()).await;
}

async fn database(fleet: &Fleet) -> PgConnection {
    PgConnection::connect(fleet.database("catalog").expose_secret()).await.unwrap()
}

/// Checks that after the sweep, all bytes have a row.
async fn check_bytes(fleet: &mut Fleet, api: &Api, project: &str) {
    catalog(fleet).kill().await;
    let age = "update stray_content set touched_at = now() - interval '1 hour'";
    sqlx::query(age).execute(&mut database(fleet).await).await.unwrap();
    restart(fleet, api, project).await;
    eventually("the sweep", || async {
        let strays = sqlx::query_scalar("select count(*) from stray_content");
        let strays: i64 = strays.fetch_one(&mut database(fleet).await).await.unwrap();
        (strays == 0).then_some(())
    })
    .await;
    let rows = sqlx::query_scalar(
        "select id from content union all select content_id from stray_content
         union all select content_id from upload_part",
    );
    let rows: Vec<Uuid> = rows.fetch_all(&mut database(fleet).await).await.unwrap();
    let names = files_in(&fleet.artifacts()).into_iter();
    let names = names.map(|path| path.file_name().unwrap().to_string_lossy().into_owned());
    let rows: BTreeSet<String> = rows.iter().map(Uuid::to_string).collect();
    assert_eq!(names.collect::<BTreeSet<_>>(), rows);
}

/// Uploads a file, whose response may never arrive.
async fn upload_in_time(api: &Api, project: &str, contents: Vec<u8>) {
    let request = api.request(Method::POST, &format!("{project}/files"));
    let request = request.header("X-File-Name", "raced.img").body(contents);
    let _ = timeout(Duration::from_secs(10), request.send()).await;
}
