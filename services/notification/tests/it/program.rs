//! The commands of `assay-notification`, run as an operator does.

use std::process::Output;

use anyhow::Result;
use assay_database::connect_options;
use assay_events::{Event, publish};
use assay_notification::migrations;
use assay_proto::{CustomerId, NotificationId};
use assay_testkit::{TestDatabase, test_dir};
use sqlx::PgPool;
use tokio::process::Command;

fn program() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_assay-notification"));
    program.env_remove("ASSAY_DATABASE_URL").kill_on_drop(true);
    program
}

fn output_of(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[tokio::test]
async fn replay_reads_the_database_url_from_a_file() -> Result<()> {
    let database = TestDatabase::create("notification", &migrations()).await?;
    let db = PgPool::connect_with(connect_options(&database.url.clone().into())?).await?;
    let mut tx = assay_database::begin(&db).await?;
    publish(&mut tx, &Event::untyped(CustomerId::new(), "1", "case", "created", &())?).await?;
    tx.commit().await?;
    sqlx::query("update outbox set published_at = now()").execute(&db).await?;
    let file = test_dir()?.join(format!("url-{}", NotificationId::new()));
    std::fs::write(&file, format!("{}\n", database.url))?;

    let replay = ["replay", "--since", "2h"];
    let replayed = program().env("ASSAY_DATABASE_URL_FILE", &file).args(replay).output().await?;
    assert!(replayed.status.success(), "{}", output_of(&replayed));
    assert!(output_of(&replayed).starts_with("1 event published since "), "{replayed:?}");
    let waiting = "select count(*) from outbox where published_at is null";
    assert_eq!(sqlx::query_scalar::<_, i64>(waiting).fetch_one(&db).await?, 1);
    Ok(())
}

#[tokio::test]
async fn missing_options_are_named_and_help_lists_all_commands() -> Result<()> {
    let without = program().args(["replay", "--since", "2h"]).output().await?;
    assert_eq!(without.status.code(), Some(2));
    assert!(output_of(&without).contains("--database-url (ASSAY_DATABASE_URL)"));
    let invalid = program().args(["replay", "--since", "yesterday"]).output().await?;
    assert_eq!(invalid.status.code(), Some(2));
    assert!(output_of(&invalid).contains("90m, 2h or 3d"), "{}", output_of(&invalid));

    let help = program().arg("--help").output().await?;
    for expected in ["replay", "dead-letters", "subscribers", "--database-url", "ASSAY_NATS_URL"] {
        assert!(output_of(&help).contains(expected), "{expected}: {}", output_of(&help));
    }
    let served = program().output().await?;
    assert_eq!(served.status.code(), Some(2), "a server needs a database");
    Ok(())
}

#[tokio::test]
async fn dead_letters_are_read_from_the_database() -> Result<()> {
    let without = program().args(["dead-letters", "list"]).output().await?;
    assert_eq!(without.status.code(), Some(2));
    assert!(output_of(&without).contains("ASSAY_DATABASE_URL"), "{}", output_of(&without));

    let database = TestDatabase::create("notification", &migrations()).await?;
    let of = |arguments: [&'static str; 3]| {
        program().args(["--database-url", &database.url]).args(arguments).output()
    };
    let list = of(["dead-letters", "list", "--kind=delivery"]).await?;
    assert!(list.status.success(), "{}", output_of(&list));
    assert_eq!(output_of(&list), "No dead letters found\n");
    let none = program().args(["dead-letters", "drop"]).output().await?;
    assert_eq!(none.status.code(), Some(2), "drop needs a selection");
    Ok(())
}
