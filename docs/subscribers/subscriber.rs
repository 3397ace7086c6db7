//! Reads Assay's notifications from NATS and appends each of them, once, to a file as a line.
//!
//! ```sh
//! subscriber nats://127.0.0.1:4222 billing notifications.jsonl [DOMAIN]
//! ```

use std::{
    collections::HashSet,
    fs::File,
    io::{Read as _, Write as _},
    time::Duration,
};

use anyhow::{Context as _, anyhow};
use async_nats::{
    ConnectOptions, ServerAddr,
    jetstream::{self, consumer::PullConsumer, context::ConsumerInfoErrorKind as Kind},
};
use futures::StreamExt as _;
use serde_json::Value;
use tokio::time::sleep;

const STREAM: &str = "ASSAY_NOTIFICATIONS";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, name, path, domain @ ..] = &arguments[..] else {
        anyhow::bail!("usage: subscriber URL NAME FILE [DOMAIN]");
    };
    let server: ServerAddr = url.parse()?;
    let mut options = ConnectOptions::new().retry_on_initial_connect();
    if let (Some(user), Some(password)) = (server.username(), server.password()) {
        options = options.user_and_password(user.to_owned(), password.to_owned());
    }
    let client = options.connect(server).await?;
    let jetstream = match domain.first() {
        Some(domain) => jetstream::with_domain(client, domain),
        None => jetstream::new(client),
    };
    let consumer: PullConsumer =
        jetstream.get_consumer_from_stream(name, STREAM).await.with_context(|| missing(name))?;

    // In practice, store the id as a key in your database, in the transaction of your effects.
    let mut file = File::options().create(true).append(true).read(true).open(path)?;
    let (mut stored, mut seen, mut size) = (Vec::new(), HashSet::new(), 0);
    file.read_to_end(&mut stored)?;
    for line in stored.split_inclusive(|byte| *byte == b'\n') {
        // A kill may have cut off the last line.
        if line.ends_with(b"\n") {
            seen.insert(id(line)?);
            size += line.len();
        }
    }
    file.set_len(u64::try_from(size)?)?;
    loop {
        let batch = consumer.batch().max_messages(1).expires(Duration::from_secs(30));
        // Without the consumer, requests time out as they do without messages.
        let Some(Ok(message)) = batch.messages().await?.next().await else {
            check(&consumer, name).await?;
            continue;
        };
        // A message may be delivered twice.
        if seen.insert(id(&message.payload)?) {
            file.write_all(&[&message.payload[..], b"\n"].concat())?;
            file.sync_data()?;
        }
        // Only after the event is on disk.
        message.ack().await.map_err(|error| anyhow!(error))?;
    }
}

/// Fails if the consumer does not exist.
async fn check(consumer: &PullConsumer, name: &str) -> anyhow::Result<()> {
    match consumer.get_info().await {
        Ok(_) => {}
        Err(error) if matches!(error.kind(), Kind::NotFound | Kind::StreamNotFound) => {
            anyhow::bail!(missing(name));
        }
        Err(error) => {
            eprintln!("NATS does not answer, or refuses the request ({error}); will retry");
            sleep(Duration::from_secs(1)).await;
        }
    }
    Ok(())
}

fn missing(name: &str) -> String {
    format!(
        "the consumer {name} of the stream {STREAM} cannot be read: it was never added or was removed, its \
         customer was deleted, or NATS has lost its store. Add it with: assay subscribers add {name}"
    )
}

fn id(event: &[u8]) -> anyhow::Result<String> {
    let event: Value = serde_json::from_slice(event)?;
    event["id"].as_str().map(str::to_owned).context("an event without an id")
}
