//! A notification to many event streams.

use std::{net::SocketAddr, time::Instant};

use anyhow::{Context, Result, bail, ensure};
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
    let mut tasks = JoinSet::new();
    for gateway in to.system.gateways().iter().cycle().take(STREAMS) {
        open(*gateway, to.system.token(), "source=Build", sender.clone(), &mut tasks).await?;
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

/// Opens an event stream, and sends the time of each event that arrives. The task ends with the stream.
pub(super) async fn open(
    gateway: SocketAddr,
    token: &str,
    query: &str,
    sender: mpsc::UnboundedSender<Instant>,
    tasks: &mut JoinSet<Result<()>>,
) -> Result<()> {
    let path = format!("/api/notifications/stream?{query}");
    let mut connection = Connection::open(gateway).await?;
    let response = connection.send(prepare(&Method::GET, &path, token, None)).await?;
    ensure!(response.status().is_success(), "stream: {}", response.status());
    let mut body = response.into_body();
    tasks.spawn(async move {
        while let Some(Ok(frame)) = body.frame().await {
            let data = frame.data_ref().map_or(&[][..], |data| data);
            for _ in data.windows(EVENT.len()).filter(|window| *window == EVENT) {
                sender.send(Instant::now())?;
            }
        }
        // The stream ends with its connection.
        drop(connection);
        Ok(())
    });
    Ok(())
}
