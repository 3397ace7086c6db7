//! Private PostgreSQL servers.

use anyhow::Result;
use assay_servers::{Durability, Postgres, PostgresOptions};
use assay_testkit::eventually;
use sqlx::{Connection, Executor, PgConnection};

use crate::{is_alive, kill, lock, reachable_dir};

fn for_tests() -> PostgresOptions {
    PostgresOptions { durability: Durability::None, programs: None }
}

/// Stores a row in a new database.
async fn store_a_row(postgres: &Postgres) -> Result<()> {
    postgres.create_database_if_missing("letters").await?;
    postgres.create_database_if_missing("letters").await?;
    let mut connection = PgConnection::connect(&postgres.url("letters")).await?;
    connection.execute("create table letter (content text)").await?;
    connection.execute("insert into letter values ('hello')").await?;
    Ok(connection.close().await?)
}

async fn stored_row(postgres: &Postgres) -> Result<String> {
    let mut connection = PgConnection::connect_with(&postgres.options("letters")).await?;
    Ok(sqlx::query_scalar("select content from letter").fetch_one(&mut connection).await?)
}

#[tokio::test]
async fn rows_survive_a_restart() -> Result<()> {
    let dir = reachable_dir();
    let data = lock(&dir);
    let postgres = Postgres::start(&data, &PostgresOptions::default()).await?;
    store_a_row(&postgres).await?;

    let pid = postgres.pid();
    postgres.stop().await?;
    assert!(!is_alive(pid));

    let postgres = Postgres::start(&data, &PostgresOptions::default()).await?;
    assert_eq!(stored_row(&postgres).await?, "hello");
    postgres.stop().await
}

#[tokio::test]
async fn rows_survive_a_kill() -> Result<()> {
    let dir = reachable_dir();
    let data = lock(&dir);
    let postgres = Postgres::start(&data, &PostgresOptions::default()).await?;
    store_a_row(&postgres).await?;

    kill(postgres.pid());
    let failure = postgres.exited().await.to_string();
    assert!(failure.starts_with("postgres has ended (signal: 9"), "{failure}");

    let postgres = Postgres::start(&data, &PostgresOptions::default()).await?;
    assert_eq!(stored_row(&postgres).await?, "hello");
    postgres.stop().await
}

#[tokio::test]
async fn a_server_left_running_is_stopped_at_the_next_start() -> Result<()> {
    let dir = reachable_dir();
    let data = lock(&dir);
    let left = Postgres::start(&data, &for_tests()).await?;
    store_a_row(&left).await?;

    let postgres = Postgres::start(&data, &for_tests()).await?;
    assert!(!is_alive(left.pid()));
    assert_eq!(stored_row(&postgres).await?, "hello");
    postgres.stop().await
}

/// The system reuses process ids, in containers often the same ones.
#[tokio::test]
async fn a_stale_pid_file_with_the_id_of_another_process_is_ignored() -> Result<()> {
    let dir = reachable_dir();
    let data = lock(&dir);
    let postgres = Postgres::start(&data, &for_tests()).await?;
    let pid_file = dir.path().join("postgres/cluster/postmaster.pid");
    let text = std::fs::read_to_string(&pid_file)?;
    postgres.stop().await?;

    let mut stranger = std::process::Command::new("sleep").arg("60").spawn()?;
    let (_, rest) = text.split_once('\n').expect("several lines");
    std::fs::write(&pid_file, format!("{}\n{rest}", stranger.id()))?;

    let postgres = Postgres::start(&data, &for_tests()).await?;
    assert!(stranger.try_wait()?.is_none(), "the other process still runs");
    stranger.kill()?;
    stranger.wait()?;
    postgres.stop().await
}

#[tokio::test]
async fn a_server_starts_in_a_directory_with_a_long_path() -> Result<()> {
    let dir = reachable_dir();
    let deep = assay_servers::DataDir::lock(dir.path().join("deep, \"down\" & ".repeat(6)))?;
    let postgres = Postgres::start(&deep, &for_tests()).await?;
    store_a_row(&postgres).await?;
    assert_eq!(stored_row(&postgres).await?, "hello");
    postgres.stop().await
}

#[tokio::test]
async fn a_server_survives_the_thread_that_started_it() -> Result<()> {
    let dir = reachable_dir();
    let data = lock(&dir);
    let start = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(Postgres::start(&data, &for_tests()))
    };
    let postgres = std::thread::spawn(start).join().expect("no panic")?;

    store_a_row(&postgres).await?;
    assert_eq!(stored_row(&postgres).await?, "hello");
    postgres.stop().await
}

#[tokio::test]
async fn a_dropped_server_stops() -> Result<()> {
    let dir = reachable_dir();
    let data = lock(&dir);
    let postgres = Postgres::start(&data, &for_tests()).await?;
    let pid = postgres.pid();
    drop(postgres);
    eventually("the end of the server", || async { (!is_alive(pid)).then_some(()) }).await;
    Ok(())
}

#[tokio::test]
async fn data_of_another_version_is_rejected() -> Result<()> {
    let dir = reachable_dir();
    let data = lock(&dir);
    Postgres::start(&data, &for_tests()).await?.stop().await?;
    std::fs::write(dir.path().join("postgres/cluster/PG_VERSION"), "8\n")?;

    let failure = Postgres::start(&data, &for_tests())
        .await
        .expect_err("version 8 is not installed")
        .to_string();
    assert!(failure.contains("was created by PostgreSQL 8, but only "), "{failure}");
    Ok(())
}

#[tokio::test]
async fn the_error_of_missing_programs_suggests_how_to_install_them() {
    let dir = reachable_dir();
    let options = PostgresOptions { programs: Some("/nowhere".into()), ..for_tests() };
    let failure = Postgres::start(&lock(&dir), &options).await;
    let failure = failure.expect_err("the programs do not exist").to_string();
    assert!(failure.starts_with("PostgreSQL server not found in /nowhere: "), "{failure}");
    assert!(failure.contains("apt-get install postgresql"), "{failure}");
}
