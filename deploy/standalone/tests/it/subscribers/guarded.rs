//! The shipped NATS configuration: permissions of each user.

use std::time::Duration;

use assay_database::connect_options;
use assay_events::EVENT;
use assay_testkit::eventually;
use async_nats::{
    Client, ConnectOptions,
    jetstream::{self, consumer::PullConsumer},
};
use futures::StreamExt as _;
use serde_json::json;
use sqlx::PgPool;
use tokio::time::timeout;

use super::{Subscriber, notify, python, subscribe};
use crate::{
    junit,
    world::{World, create_project, id, nats_password, nats_url_as},
};

#[tokio::test(flavor = "multi_thread")]
async fn every_program_and_a_subscriber_has_the_necessary_permissions() {
    let world = World::start_with_nats_users().await;
    let operator = connect_as(&world, "operator").await;
    subscribe(&operator, "billing").await;
    let url = nats_url_as(world.nats_url(), "billing");
    let subscriber = Subscriber::new(python(), &[&url, "billing"], Some("ASSAY"));
    let _running = subscriber.start();
    publish_from_every_service(&world).await;
    let stored = eventually("notifications of all services", || async {
        let stored = world.api.get("/api/notifications").await.ok();
        let of = |source: &str| stored.as_array().unwrap().iter().any(|n| n["Source"] == source);
        ["User", "TestSet", "TestCase"].iter().all(|source| of(source)).then_some(stored)
    })
    .await;
    subscriber.wait_for(stored.as_array().unwrap().len()).await;
    dead_letters_of_every_consumer(&world, &operator).await;
    let log = world.nats_log();
    assert!(!log.contains("Violation"), "a program lacks a permission: {log}");
    world.stop().await;
}

/// Makes identity, catalog and execution publish events that others apply, and revokes a token.
async fn publish_from_every_service(world: &World) {
    let api = &world.api;
    let member = world.create_member(api, "bob@example.org", "Login, Read").await;
    let project = create_project(api).await;
    let set = api.post(&format!("{project}/testsets"), json!({"Name": "All"})).await.created();
    let set = format!("{project}/testsets/{}", id(&set));
    junit::upload(api, &set, junit::report(3)).await.created();
    api.delete(&format!("/api/users/{}", member.id)).await.expect(204);
    eventually("a revoked token", || async {
        (member.api.get("/api/projects").await.status == 401).then_some(())
    })
    .await;
    eventually("results in the catalog", || async {
        let cases = api.get(&format!("{project}/testcases")).await.ok();
        (cases[0]["LastResult"] == "Passed").then_some(())
    })
    .await;
}

/// Makes every consumer fail; an operator finds and drops the dead letters.
async fn dead_letters_of_every_consumer(world: &World, operator: &Client) {
    for subject in ["assay.execution.x", "assay.catalog.x.secrets.x", "assay.catalog.x.retention.x"]
    {
        let published = jetstream::new(operator.clone()).publish(subject, "{".into()).await;
        published.unwrap().await.unwrap();
    }
    let mut databases = Vec::new();
    for url in world.databases() {
        databases.push(PgPool::connect_with(connect_options(url).unwrap()).await.unwrap());
    }
    eventually("dead letters of every consumer", || async {
        let mut counts = Vec::new();
        for db in &databases {
            counts.push(EVENT.list(db, None, drop).await.unwrap());
        }
        (counts == [1, 1, 1, 3]).then_some(())
    })
    .await;
    for db in &databases {
        EVENT.drop(&mut db.acquire().await.unwrap(), None).await.unwrap();
    }
}

/// Neither directly nor by having messages delivered there.
#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_has_no_access_to_other_streams() {
    let world = World::start_with_nats_users().await;
    let operator = connect_as(&world, "operator").await;
    subscribe(&operator, "billing").await;
    subscribe(&operator, "other").await;
    let before = fill_streams(&world, &operator).await;

    let billing = connect_as(&world, "billing").await;
    let mut replies = billing.subscribe("assay.>").await.unwrap();
    let domain = jetstream::with_domain(billing.clone(), "ASSAY");
    for stream in ["ASSAY_NOTIFICATIONS", "ASSAY_CATALOG"] {
        assert!(domain.get_stream(stream).await.is_err());
        let other: Result<PullConsumer, _> = domain.get_consumer_from_stream("other", stream).await;
        assert!(other.is_err());
    }
    for subject in ["assay.catalog.x", "assay.notifications.x", "assay.revocations"] {
        billing.publish(subject, "{}".into()).await.unwrap();
    }
    let next = "$JS.ASSAY.API.CONSUMER.MSG.NEXT.ASSAY_NOTIFICATIONS";
    for (consumer, to) in [("billing", "assay.catalog.x"), ("other", "assay.other.x")] {
        let request = format!("{next}.{consumer}");
        billing.publish_with_reply(request, to, "{}".into()).await.unwrap();
    }
    // The replies reach only the subscriber: those to its requests, and one message of its
    // consumer. Requests for the other consumer get an empty answer.
    let mut subjects = Vec::new();
    while let Ok(Some(message)) = timeout(Duration::from_secs(1), replies.next()).await {
        subjects.push((message.subject.to_string(), message.payload.len()));
    }
    subjects.sort();
    let [own @ .., (delivered, size)] = [0, 2, 3, 4, 1].map(|place| subjects[place].clone());
    let expected = [
        ("assay.catalog.x", 2),
        ("assay.notifications.x", 2),
        ("assay.other.x", 0),
        ("assay.revocations", 2),
    ];
    assert_eq!(own, expected.map(|(subject, size)| (subject.to_owned(), size)));
    let events = [".auditentry.loggedin", ".project.created"];
    assert!(events.iter().any(|event| delivered.ends_with(event)) && size > 2, "{subjects:?}");
    assert_eq!(subjects.len(), 5, "{subjects:?}");
    assert_eq!(messages(&operator).await, before);
    notify(&world.api, 1).await;
    eventually("the notification", || async {
        (messages(&operator).await == [before[0], before[1] + 1]).then_some(())
    })
    .await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_lacks_the_permissions_of_other_programs() {
    let world = World::start_with_nats_users().await;
    let catalog = connect_as(&world, "catalog").await;
    let operator = connect_as(&world, "operator").await;
    let before = fill_streams(&world, &operator).await;
    let subjects = ["assay.notifications.x", "assay.identity.x", "assay.revocations"];
    for subject in subjects {
        catalog.publish(subject, "{}".into()).await.unwrap();
    }
    let inboxes = ["_INBOX_assay.identity.>", "_INBOX.>", "assay.>"];
    for inbox in inboxes {
        catalog.subscribe(inbox).await.unwrap();
    }
    catalog.flush().await.unwrap();
    let refused = |what: &str, subject: &str| {
        let line = format!("{what} Violation - User \"catalog\", Subject {subject:?}");
        world.nats_log().contains(&line)
    };
    eventually("violations in the log", || async {
        let all = subjects.iter().all(|subject| refused("Publish", subject))
            && inboxes.iter().all(|inbox| refused("Subscription", inbox));
        all.then_some(())
    })
    .await;
    assert_eq!(messages(&operator).await, before);
    world.stop().await;
}

async fn connect_as(world: &World, user: &str) -> Client {
    let options = ConnectOptions::with_user_and_password(user.to_owned(), nats_password(user));
    let options = options.custom_inbox_prefix(format!("_INBOX_assay.{user}"));
    options.connect(world.nats_url()).await.unwrap()
}

/// Creates a project. Returns the numbers of messages after its event and that of the login.
async fn fill_streams(world: &World, operator: &Client) -> [u64; 2] {
    create_project(&world.api).await;
    eventually("messages in both streams", || async {
        messages_or_none(operator).await.filter(|counts| *counts == [1, 2])
    })
    .await
}

/// Numbers of messages in the stream of the catalog and in that of notifications.
async fn messages(operator: &Client) -> [u64; 2] {
    messages_or_none(operator).await.expect("both streams")
}

async fn messages_or_none(operator: &Client) -> Option<[u64; 2]> {
    let jetstream = jetstream::new(operator.clone());
    let mut counts = [0; 2];
    for (count, stream) in counts.iter_mut().zip(["ASSAY_CATALOG", "ASSAY_NOTIFICATIONS"]) {
        *count = jetstream.get_stream(stream).await.ok()?.cached_info().state.messages;
    }
    Some(counts)
}
