//! A notification to many event streams.

use std::time::Instant;

use anyhow::{Context, Result, bail};
use futures::future::try_join_all;
use http::Method;
use http_body_util::BodyExt;
use serde_json::json;
use tokio::{sync::mpsc, task::JoinSet};

use super::measurement::Measurement;
use crate::{
    client::{Connection, prepare},
    load::{Outcome, micros},
    report::{Figure, Section, Unit},
};

const STREAMS: usize = 100;

/// Begins each event with a notification.
const EVENT: &[u8] = b"event: notification";

pub(super) async fn measure(to: &mut Measurement<'_>) -> Result<()> {
    let client = to.system.client();
    let (sender, mut received) = mpsc::unbounded_channel();
    let request =
        prepare(&Method::GET, "/api/notifications/stream?source=Build", to.system.token(), None);
    let gateways = to.system.gateways().iter().cycle().take(STREAMS);
    let streams = gateways.map(async |gateway| {
        let mut connection = Connection::open(*gateway).await?;
        let response = connection.send(request.clone()).await?;
        anyhow::ensure!(response.status().is_success(), "stream: {}", response.status());
        // The stream ends with its connection.
        anyhow::Ok((connection, response.into_body()))
    });
    let mut tasks = JoinSet::new();
    for (connection, mut body) in try_join_all(streams).await? {
        let sender = sender.clone();
        tasks.spawn(async move {
            while let Some(Ok(frame)) = body.frame().await {
                let data = frame.data_ref().map_or(&[][..], |data| data);
                for _ in data.windows(EVENT.len()).filter(|window| *window == EVENT) {
                    sender.send(Instant::now())?;
                }
            }
            drop(connection);
            anyhow::Ok(())
        });
    }

    let (began, mut latencies) = (Instant::now(), Vec::new());
    while began.elapsed() < to.time {
        let sent = Instant::now();
        let notification =
            json!({"Source": "Build", "SourceId": "1", "Target": "Build", "Action": "Done"});
        client.post("/api/notifications", notification).await?;
        for _ in 0..STREAMS {
            tokio::select! {
                arrived = received.recv() => drop(arrived.context("no streams")?),
                _ = tasks.join_next() => bail!("an event stream has ended"),
            }
        }
        latencies.push(micros(sent.elapsed()));
    }
    let outcome = Outcome::new(began.elapsed().as_secs_f64(), latencies);
    for (name, percent) in [("median", 50), ("p99", 99)] {
        let name = format!("notification to 100 event streams: {name}");
        let figure = Figure::new(Section::Latency, &name, Unit::Millis);
        to.report.add(figure, to.system.shape, to.round, outcome.percentile(percent));
    }
    Ok(())
}
