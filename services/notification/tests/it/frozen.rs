//! Senders that freeze while they send, receivers that drip, and the age of deliveries that wait.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use assay_notification::age_of_deliveries;
use assay_proto::notification::{Delivery, DeliveryStatus};
use assay_testkit::eventually;
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::interval,
};

use crate::{
    receiver::{Behaviour, Receiver},
    webhook::webhook_to,
    world::{World, notification, numbered},
};

/// Ends the claims of webhooks, as time does while a program is frozen.
async fn expire_claims(world: &World) -> Result<()> {
    sqlx::query("update webhook set rests_until = now()").execute(&world.db).await?;
    Ok(())
}

#[tokio::test]
async fn a_sender_that_was_frozen_records_nothing_after_another_one_took_over() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let permits = Arc::new(Semaphore::new(0));
    let receiver = Receiver::start(Behaviour::Late(permits.clone(), 500)).await?;
    let webhook = world.subscribe(&user, &receiver).await?;
    world.create(&user, notification()).await?;
    receiver.receives(1).await;

    expire_claims(&world).await?;
    receiver.set(Behaviour::Answer(200));
    let is_delivered = |one: &Delivery| one.status() == DeliveryStatus::Delivered;
    world.delivery(&user, &webhook, is_delivered).await;
    permits.add_permits(1);
    world.finish().await?;
    let recorded: (i32, bool, Option<String>) =
        sqlx::query_as("select attempts, delivered_at is not null, error from webhook_delivery")
            .fetch_one(&world.db)
            .await?;
    assert_eq!(recorded, (1, true, None));
    let is_failing = sqlx::query_scalar("select failing_since is not null from webhook");
    let is_failing: bool = is_failing.fetch_one(&world.db).await?;
    assert!(!is_failing, "the late failure says nothing about the receiver now");
    Ok(())
}

#[tokio::test]
async fn a_sender_that_is_frozen_blocks_its_webhooks_for_half_a_minute() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let hanging = Receiver::start(Behaviour::Hang).await?;
    world.subscribe(&user, &hanging).await?;
    world.create(&user, notification()).await?;
    hanging.receives(1).await;
    let claim =
        sqlx::query_scalar("select extract(epoch from rests_until - now())::float8 from webhook");
    let claim: f64 = claim.fetch_one(&world.db).await?;
    // A round begins attempts of 15 s for 5 s.
    assert!((20.0..=30.0).contains(&claim), "a claim of {claim} s");
    Ok(())
}

#[tokio::test]
async fn a_receiver_that_drips_its_answer_is_given_up_at_the_deadline() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    let mut conversations = JoinSet::new();
    conversations.spawn(async move {
        let mut conversations = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            conversations.spawn(drip(stream));
        }
    });
    let webhook = world.add_webhook(&user, webhook_to(&url)).await?;
    world.create(&user, notification()).await?;
    eventually("a part of the claim", || async {
        let passed = "select count(*) from webhook
                      where claim is not null and rests_until < now() + interval '20 seconds'";
        let passed = sqlx::query_scalar(passed).fetch_one(&world.db).await;
        (passed.unwrap_or(0_i64) == 1).then_some(())
    })
    .await;
    let failed = world.delivery(&user, &webhook, |one| one.error.is_some()).await;
    assert_eq!(failed.error.as_deref(), Some("the receiver did not answer within 15 s"));
    Ok(())
}

/// Sends a header that does not end.
async fn drip(mut stream: TcpStream) {
    let mut drops = interval(Duration::from_millis(50));
    let mut sent = stream.write_all(b"HTTP/1.1 200 OK\r\nx: ").await;
    while sent.is_ok() {
        drops.tick().await;
        sent = stream.write_all(b"y").await;
    }
}

#[tokio::test]
async fn the_age_of_deliveries_is_that_of_the_oldest_that_could_be_sent() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Answer(500)).await?;
    let webhook = world.subscribe(&user, &receiver).await?;
    for number in 1..=2 {
        world.create(&user, numbered(number)).await?;
    }
    world.delivery(&user, &webhook, |one| one.error.is_some()).await;
    world.finish().await?;
    let age = async |rests: &str, due: &str| {
        let rest = "update webhook set rests_until = now() + $1::interval";
        sqlx::query(rest).bind(rests).execute(&world.db).await?;
        let postpone = "update webhook_delivery set next_attempt_at = now() + $1::interval";
        sqlx::query(postpone).bind(due).execute(&world.db).await?;
        age_of_deliveries().seconds(&world.db).await.map_err(anyhow::Error::from)
    };
    assert!(age("1 minute", "-1 hour").await?.abs() < 0.1, "the webhook rests, or is claimed");
    assert!(age("-1 hour", "1 minute").await?.abs() < 0.1, "the next attempts are not due");
    assert!((60.0..90.0).contains(&age("-1 minute", "-1 hour").await?), "it has rested");
    assert!((60.0..90.0).contains(&age("-1 hour", "-1 minute").await?));
    Ok(())
}
