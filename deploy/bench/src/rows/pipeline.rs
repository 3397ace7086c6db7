//! The pipeline of events: from a change to the receiver of a webhook.

use std::{net::Ipv4Addr, time::Instant};

use anyhow::{Context, Result};
use axum::{Router, extract::State, routing::post};
use http::StatusCode;
use serde_json::json;
use tokio::{net::TcpListener, sync::mpsc, task::JoinSet};

use super::measurement::Measurement;
use crate::{
    client::{Client, id},
    fixture::{IMPORTED, create_project, import},
    report::{Figure, Section, Unit, median},
};

/// Number of single notifications.
const SINGLE: usize = 20;

/// A receiver of a webhook, which counts deliveries.
struct Receiver {
    url: String,
    received: mpsc::UnboundedReceiver<()>,
    /// Ends with the receiver.
    _server: JoinSet<()>,
}

impl Receiver {
    async fn start() -> Result<Self> {
        let (sender, received) = mpsc::unbounded_channel();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}/", listener.local_addr()?);
        let count = async |State(sender): State<mpsc::UnboundedSender<()>>| {
            let _ = sender.send(());
            StatusCode::NO_CONTENT
        };
        let routes = Router::new().route("/", post(count)).with_state(sender);
        let mut server = JoinSet::new();
        server.spawn(async move { drop(axum::serve(listener, routes).await) });
        Ok(Self { url, received, _server: server })
    }

    async fn wait_for(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            self.received.recv().await.context("the receiver has stopped")?;
        }
        Ok(())
    }
}

pub(super) async fn measure(to: &mut Measurement<'_>) -> Result<()> {
    let client = to.system.client();
    let mut receiver = Receiver::start().await?;
    let project = create_project(&client, "Imported").await?;
    to.system.rest().await;
    let webhook = json!({"Url": receiver.url, "Events": ["Client.Build.*", "TestCase.*"]});
    let webhook = id(&client.post("/api/webhooks", webhook).await?)?;

    let single = single(&client, &mut receiver).await?;
    let began = Instant::now();
    import(&client, &project, 0, IMPORTED).await?;
    let imported = began.elapsed().as_secs_f64();
    receiver.wait_for(IMPORTED).await?;
    let delivered = began.elapsed().as_secs_f64();
    let began = Instant::now();
    import(&client, &project, 0, IMPORTED).await?;
    let again = began.elapsed().as_secs_f64();
    client.delete(&format!("/api/webhooks/{webhook}")).await?;

    let shape = to.system.shape;
    let figure = |name, unit| Figure::new(Section::Batches, name, unit);
    let to_webhook = "notification to a webhook";
    to.report.add(figure(to_webhook, Unit::Millis), shape, to.round, single);
    let import = "import of 10,000 test cases";
    to.report.add(figure(import, Unit::Seconds), shape, to.round, imported);
    let all = figure("… until a webhook has received all", Unit::Seconds).with_goal("3 s");
    to.report.add(all, shape, to.round, delivered);
    to.report.add(figure("… the same again", Unit::Seconds), shape, to.round, again);
    to.system.rest().await;
    Ok(())
}

/// Measures single notifications, from the request to the receiver, in milliseconds.
async fn single(client: &Client, receiver: &mut Receiver) -> Result<f64> {
    let mut times = Vec::new();
    while times.len() < SINGLE {
        let began = Instant::now();
        let notification =
            json!({"Source": "Build", "SourceId": "1", "Target": "Build", "Action": "Done"});
        client.post("/api/notifications", notification).await?;
        receiver.wait_for(1).await?;
        times.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(median(&times))
}
