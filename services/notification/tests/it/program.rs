//! The program's commands, as an operator of a container runs them.

use std::process::Output;

use anyhow::Result;
use assay_events::{Event, publish};
use assay_notification::migrations;
use assay_proto::{CustomerId, NotificationId};
use assay_runtime::connect_options;
use assay_servers::{DataDir, Nats};
use assay_testkit::{TestDatabase, test_dir};
use sqlx::PgPool;
use tokio::process::Command;

fn program() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_assay-notification"));
    program.env_remove("ASSAY_DATABASE_URL").kill_on_drop(true);
    program
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// A published event, in a database whose URL a file holds.
#[tokio::test]
async fn events_are_replayed_with_the_database_that_a_file_names() -> Result<()> {
    let database = TestDatabase::create("notification", &migrations()).await?;
    let db = PgPool::connect_with(connect_options(&database.url.clone().into())?).await?;
    let mut tx = assay_runtime::begin(&db).await?;
    publish(&mut tx, &Event::new(CustomerId::new(), "1", "case", "created", &())?).await?;
    tx.commit().await?;
    sqlx::query("update outbox set published_at = now()").execute(&db).await?;
    let file = test_dir()?.join(format!("url-{}", NotificationId::new()));
    std::fs::write(&file, format!("{}\n", database.url))?;

    let replay = ["replay", "--since", "2h"];
    let replayed = program().env("ASSAY_DATABASE_URL_FILE", &file).args(replay).output().await?;
    assert!(replayed.status.success(), "{}", said(&replayed));
    assert!(said(&replayed).starts_with("1 event that was published since "), "{replayed:?}");
    let waiting = "select count(*) from outbox where published_at is null";
    assert_eq!(sqlx::query_scalar::<_, i64>(waiting).fetch_one(&db).await?, 1);
    Ok(())
}

#[tokio::test]
async fn what_a_command_lacks_is_said_and_what_there_is_to_do_is_shown() -> Result<()> {
    let without = program().args(["replay", "--since", "2h"]).output().await?;
    assert_eq!(without.status.code(), Some(2));
    assert!(said(&without).contains("--database-url (ASSAY_DATABASE_URL)"));
    let wrong = program().args(["replay", "--since", "yesterday"]).output().await?;
    assert_eq!(wrong.status.code(), Some(2));
    assert!(said(&wrong).contains("90m, 2h or 3d"), "{}", said(&wrong));

    let help = program().arg("--help").output().await?;
    for shown in ["replay", "dead-letters", "subscribers", "--database-url", "ASSAY_NATS_URL"] {
        assert!(said(&help).contains(shown), "{shown}: {}", said(&help));
    }
    let served = program().output().await?;
    assert_eq!(served.status.code(), Some(2), "a server needs a database");
    Ok(())
}

#[tokio::test]
async fn dead_letters_are_looked_for_at_nats() -> Result<()> {
    let away = ["--nats-url", "nats://127.0.0.1:1", "dead-letters", "list"];
    let away = program().args(away).output().await?;
    assert_eq!(away.status.code(), Some(1));
    assert!(said(&away).contains("ASSAY_NATS_URL"), "{}", said(&away));

    let dir = test_dir()?.join(format!("program-{}", NotificationId::new()));
    let nats = Nats::start(&DataDir::lock(dir)?, None).await?;
    let list = program().args(["--nats-url", nats.url(), "dead-letters", "list"]).output().await?;
    assert!(list.status.success());
    assert_eq!(said(&list), "There are no such dead letters\n");
    let none = program().args(["--nats-url", nats.url(), "dead-letters", "drop"]).output().await?;
    assert_eq!(none.status.code(), Some(2), "which to drop has to be said");
    nats.stop().await
}
