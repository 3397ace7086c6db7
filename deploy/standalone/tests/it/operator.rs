//! Operator commands for NATS of a running Assay.

use std::path::Path;

use assay_servers::Nats;
use assay_testkit::eventually;
use async_nats::jetstream::{self, consumer::PullConsumer};
use futures::StreamExt as _;
use serde_json::{Value, json};

use crate::process::{PASSWORD, Program, command, data_dir};

/// The output of a successful command.
async fn run(data: &Path, arguments: &[&str]) -> String {
    let output = command(data).args(arguments).output().await.unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The error output of a failing command.
async fn error_of(data: &Path, arguments: &[&str]) -> String {
    let output = command(data).args(arguments).output().await.unwrap();
    assert!(!output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

async fn jetstream_of(data: &Path) -> jetstream::Context {
    jetstream::new(async_nats::connect(Nats::url_of_running(data).unwrap()).await.unwrap())
}

/// Waits for events of a subscriber; returns their sources and actions.
async fn received(data: &Path, subscriber: &str, count: usize) -> Vec<String> {
    let jetstream = jetstream_of(data).await;
    let consumer = jetstream.get_consumer_from_stream(subscriber, "ASSAY_NOTIFICATIONS");
    let consumer: PullConsumer = consumer.await.unwrap();
    let mut messages = consumer.messages().await.unwrap();
    let mut subjects = Vec::new();
    while subjects.len() < count {
        let message = messages.next().await.unwrap().unwrap();
        message.double_ack().await.unwrap();
        let event: Value = serde_json::from_slice(&message.payload).unwrap();
        subjects.push(format!("{} {}", event["data"]["Source"], event["data"]["Action"]));
    }
    subjects
}

#[tokio::test]
async fn a_replay_after_a_loss_of_nats_data_reaches_subscribers() {
    let data = data_dir();
    assert!(error_of(&data, &["replay", "--since", "1h"]).await.contains("no PostgreSQL runs in"));
    assert!(error_of(&data, &["subscribers", "list"]).await.contains("no nats-server runs in"));

    let program = Program::start(command(&data)).await;
    let api = program.log_in("ada@example.org", PASSWORD).await;
    for name in ["One", "Two"] {
        api.post("/api/projects", json!({"Name": name})).await.created();
    }
    eventually("a stream", || async {
        command(&data)
            .args(["subscribers", "list"])
            .output()
            .await
            .unwrap()
            .status
            .success()
            .then_some(())
    })
    .await;
    assert_eq!(run(&data, &["subscribers", "list"]).await, "No subscribers found\n");
    let add = ["subscribers", "add", "billing", "--source", "Project"];
    let added = "Added billing, which receives messages on assay.notifications.*.project.*\n";
    assert_eq!(run(&data, &add).await, added);
    assert_eq!(received(&data, "billing", 2).await, [r#""Project" "Created""#; 2]);
    assert!(error_of(&data, &add).await.contains("the subscriber billing already exists"));
    assert!(program.terminate().await.success());

    std::fs::remove_dir_all(data.join("nats")).unwrap();
    let program = Program::start(command(&data)).await;
    eventually("a subscriber", || async {
        command(&data).args(add).output().await.unwrap().status.success().then_some(())
    })
    .await;
    let replayed = run(&data, &["replay", "--since", "1h"]).await;
    let lines: Vec<_> = replayed.lines().collect();
    for (line, service) in lines.iter().zip(["identity", "catalog", "execution", "notification"]) {
        assert!(line.starts_with(&format!("{service}: ")), "{replayed}");
    }
    assert!(lines[1].contains(": 2 events published since "), "{replayed}");
    assert!(lines[2].contains(": nothing was published since "), "{replayed}");
    assert_eq!(received(&data, "billing", 2).await, [r#""Project" "Created""#; 2]);
    // The notification service ignores duplicates, so no notification is pending.
    assert_eq!(
        run(&data, &["subscribers", "list"]).await,
        "billing  assay.notifications.*.project.*  backlog 0, unacknowledged 0\n"
    );
    run(&data, &["subscribers", "remove", "billing"]).await;
    assert!(program.terminate().await.success());
}

#[tokio::test]
async fn dead_letters_are_listed_retried_and_dropped() {
    let data = data_dir();
    let program = Program::start(command(&data)).await;
    let api = program.log_in("ada@example.org", PASSWORD).await;
    api.post("/api/projects", json!({"Name": "One"})).await.created();
    assert_eq!(run(&data, &["dead-letters", "list"]).await, "No dead letters found\n");
    let jetstream = jetstream_of(&data).await;
    eventually("a stream for the invalid event", || async {
        jetstream.publish("assay.catalog.x", "{".into()).await.unwrap().await.ok()
    })
    .await;
    let list = || run(&data, &["dead-letters", "list", "--kind", "event"]);
    let listed = eventually("a dead letter", || async {
        let listed = list().await;
        listed.starts_with("notification/event/").then_some(listed)
    })
    .await;
    let expected = "customer none, attempts 1, consumer notification, stream ASSAY_CATALOG, \
                    sequence 2, event none, subject assay.catalog.x: not a valid event: ";
    assert!(listed.contains(expected), "{listed}");
    assert!(listed.ends_with("\n1 dead letter\n"), "{listed}");

    // An event that still cannot be applied becomes a dead letter again.
    let id = listed.split_whitespace().next().unwrap();
    let retry = ["dead-letters", "retry", id];
    assert_eq!(run(&data, &retry).await, "1 dead letter will be attempted again\n");
    eventually("the dead letter to return", || async {
        list().await.starts_with(id).then_some(())
    })
    .await;
    let unknown = error_of(&data, &["dead-letters", "retry", id, "catalog/event/9"]).await;
    assert!(unknown.contains("no such dead letter: catalog/event/9"), "{unknown}");
    let unknown = error_of(&data, &["dead-letters", "list", "--kind", "parcel"]).await;
    let kinds =
        "causes, delivery, event, execution-time, incident, insight, launch, mail, monitor, purge";
    assert!(unknown.contains(kinds), "{unknown}");
    assert_eq!(run(&data, &["dead-letters", "drop", "--all"]).await, "1 dead letter dropped\n");
    assert_eq!(list().await, "No dead letters found\n");
    assert!(program.terminate().await.success());
}
