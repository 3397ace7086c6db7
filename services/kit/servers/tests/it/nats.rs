//! Private nats-servers.

use std::path::Path;

use anyhow::Result;
use assay_servers::Nats;
use async_nats::jetstream::{self, stream};

use crate::{is_alive, kill, lock, reachable_dir};

async fn jetstream_of(nats: &Nats) -> Result<jetstream::Context> {
    Ok(jetstream::new(async_nats::connect(nats.url()).await?))
}

/// Stores a message in a new stream.
async fn store_a_message(nats: &Nats) -> Result<()> {
    let jetstream = jetstream_of(nats).await?;
    let config = stream::Config {
        name: "greetings".to_owned(),
        subjects: vec!["greeting.>".to_owned()],
        ..Default::default()
    };
    jetstream.create_stream(config).await?;
    jetstream.publish("greeting.first", "hello".into()).await?.await?;
    Ok(())
}

async fn stored_message(nats: &Nats) -> Result<String> {
    let stream = jetstream_of(nats).await?.get_stream("greetings").await?;
    let message = stream.get_raw_message(1).await?;
    Ok(String::from_utf8(message.payload.to_vec())?)
}

#[tokio::test]
async fn messages_survive_a_restart() -> Result<()> {
    let dir = reachable_dir();
    let data = lock(&dir);
    let nats = Nats::start(&data, None).await?;
    store_a_message(&nats).await?;

    let pid = nats.pid();
    nats.stop().await?;
    assert!(!is_alive(pid));

    let nats = Nats::start(&data, None).await?;
    assert_eq!(stored_message(&nats).await?, "hello");
    nats.stop().await
}

#[tokio::test]
async fn messages_survive_a_kill() -> Result<()> {
    let dir = reachable_dir();
    let data = lock(&dir);
    let nats = Nats::start(&data, None).await?;
    store_a_message(&nats).await?;

    kill(nats.pid());
    let failure = nats.exited().await.to_string();
    assert!(failure.starts_with("nats-server has ended (signal: 9"), "{failure}");

    let nats = Nats::start(&data, None).await?;
    assert_eq!(stored_message(&nats).await?, "hello");
    nats.stop().await
}

#[tokio::test]
async fn a_server_left_running_is_stopped_at_the_next_start() -> Result<()> {
    let dir = reachable_dir();
    let data = lock(&dir);
    let left = Nats::start(&data, None).await?;
    store_a_message(&left).await?;

    let nats = Nats::start(&data, None).await?;
    assert!(!is_alive(left.pid()));
    assert_eq!(stored_message(&nats).await?, "hello");
    nats.stop().await
}

#[tokio::test]
async fn the_error_of_a_missing_program_suggests_how_to_install_it() {
    let dir = reachable_dir();
    let failure = Nats::start(&lock(&dir), Some(Path::new("/nowhere/nats-server"))).await;
    let failure = failure.expect_err("the program does not exist").to_string();
    assert!(failure.starts_with("nats-server not found at /nowhere/nats-server: "), "{failure}");
    assert!(failure.contains("apt-get install nats-server"), "{failure}");
}
