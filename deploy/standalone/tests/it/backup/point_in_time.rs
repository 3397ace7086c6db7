//! Recovery of all databases to one time.

use std::{
    fs,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, chown},
    path::Path,
};

use assay_testkit::eventually;
use sqlx::{Connection as _, PgConnection};

use super::{
    FAILED, PASSED, Shop, assert_reports_are_right,
    commands::{Directory, verified},
};
use crate::{
    fleet::{Fleet, Server, new_dir},
    world::id,
};

const SECTION: &str = "Point-in-time recovery";

/// The paths and the time in the document.
const ARCHIVE: &str = "/archive";
const CLUSTER: &str = "/var/lib/postgresql/data";
const TIME: &str = "2026-11-27 14:05:00+00";

/// Creates a directory that only the owner of another one can enter.
fn create_like(other: &Path, path: &Path) {
    let other = fs::metadata(other).unwrap();
    fs::DirBuilder::new().mode(0o700).create(path).unwrap();
    chown(path, Some(other.uid()), Some(other.gid())).unwrap();
}

/// Reads a text with a statement.
async fn read(server: &Server, statement: &'static str) -> String {
    let mut connection = PgConnection::connect(&server.url()).await.unwrap();
    sqlx::query_scalar(statement).fetch_one(&mut connection).await.unwrap()
}

/// Waits until everything that was written is in the archive.
async fn archived(server: &Server) {
    let last = read(server, "select pg_walfile_name(pg_switch_wal())").await;
    eventually("the archived log", || async {
        let archived = "select coalesce(last_archived_wal, '') from pg_stat_archiver";
        (read(server, archived).await >= last).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_databases_are_recovered_to_the_time_before_a_mistake() {
    let (directory, archive) = (Directory::new(new_dir("recovery")), new_dir("archive"));
    let mut server = Server::create(&new_dir("postgres")).await;
    let cluster = server.cluster();
    create_like(&cluster, &archive);
    let in_archive = (ARCHIVE, archive.to_str().unwrap());
    let run = async |number, server: &Server, replaced: &[(&str, &str)]| {
        let (done, output) = directory.run((SECTION, number), server, &directory.0, replaced).await;
        assert!(done, "{output}");
    };

    run(0, &server, &[in_archive]).await;
    server.restart().await;
    let fleet = Fleet::on(server, &[None], &[]).await;
    let api = fleet.admins().await.remove(0);
    let shop = Shop::open(&api).await;
    shop.report(&api, PASSED).await;
    run(1, &fleet.postgres, &[]).await;
    shop.report(&api, FAILED).await;
    let kept = shop.executions(&api).await;
    let time = read(&fleet.postgres, "select clock_timestamp()::text").await;
    shop.report(&api, PASSED).await;
    api.delete(&shop.project).await.expect(204);
    archived(&fleet.postgres).await;
    let dir = fleet.stop().await.stop().await;

    fs::rename(&cluster, cluster.with_extension("damaged")).unwrap();
    create_like(&cluster.with_extension("damaged"), &cluster);
    let in_cluster = (CLUSTER, cluster.to_str().unwrap());
    // The commands extract the backup before the server runs.
    let other = Server::create(&new_dir("other")).await;
    run(2, &other, &[in_archive, in_cluster, (TIME, &time)]).await;
    other.stop().await;
    let server = Server::start(&dir).await;
    run(3, &server, &[]).await;
    let fleet = Fleet::on(server, &[None], &[]).await;
    verified(&directory, (SECTION, 4), &fleet, &directory.0).await;

    let api = fleet.admins().await.remove(0);
    assert_eq!(shop.executions(&api).await, kept);
    shop.shows(&api, &kept[0], "Failed").await;
    assert_eq!(
        id(&api.get("/api/projects").await.ok()[0]),
        shop.project.rsplit('/').next().unwrap()
    );
    assert_reports_are_right(&fleet, &api, &shop, ["Still", "Fixed"]).await;
    fleet.stop().await.stop().await;
}
