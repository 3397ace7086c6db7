//! The same while every program of Assay is killed and started again, one after the other.
//!
//! A short form runs with all tests. `make receivers` uploads 10,000 reports.

use std::time::Duration;

use assay_testkit::{Api, eventually};
use futures::future::join_all;
use reqwest::Method;
use serde_json::json;
use tokio::{
    process::Child,
    time::{Instant, interval},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{CLIENTS, Rebuild, difference, interface, report};
use crate::{
    fleet::Fleet,
    subscribers::subscribe_with,
    world::{create_project, id},
};

/// Number of reports that are uploaded by default.
const UPLOADS: &str = "60";

/// Messages that a subscriber may have in flight, and time after which they are delivered again.
const AT_ONCE: u16 = 100;
const PATIENCE: Duration = Duration::from_secs(5);

/// Pause before a request is repeated, and before the next program is killed.
const PAUSE: Duration = Duration::from_millis(100);

/// Time after which a request without an answer is repeated.
const ANSWER: Duration = Duration::from_secs(10);

/// Time that a receiver may take for each upload after the last one.
const EACH: Duration = Duration::from_millis(100);

#[tokio::test(flavor = "multi_thread")]
async fn the_rebuilt_state_is_that_of_the_interface_after_kills_of_every_program() {
    let uploads = uploads();
    let mut fleet = Fleet::start(&[None], &[]).await;
    let api = fleet.admins().await.remove(0);
    let nats = async_nats::connect(fleet.nats.url()).await.unwrap();
    let rebuilds = Rebuild::all(&fleet.nats.url());
    for rebuild in &rebuilds {
        subscribe_with(&nats, rebuild.language, AT_ONCE, PATIENCE).await;
    }
    let projects = join_all((0..CLIENTS).map(|_| create_project(&api))).await;

    let stop = CancellationToken::new();
    let working = async {
        let each = usize::try_from(uploads).unwrap().div_ceil(CLIENTS);
        let clients = projects.iter().enumerate();
        join_all(clients.map(|(client, project)| work(&api, project, client, each))).await;
        stop.cancel();
    };
    let ((), running) = tokio::join!(working, kill(&mut fleet, &rebuilds, &stop));

    // The receivers still have messages before them, and get those again that they had in flight.
    let ends = Instant::now() + Duration::from_mins(1) + uploads * EACH;
    let mut count = 0;
    for project in &projects {
        let expected = interface::executions(&api, project).await;
        count += expected.len();
        for rebuild in &rebuilds {
            let mut ticks = interval(PAUSE * 5);
            while let Some(difference) = difference(rebuild, &expected) {
                assert!(Instant::now() < ends, "{difference}");
                ticks.tick().await;
            }
        }
    }
    let uploads = usize::try_from(uploads).unwrap();
    assert!(count >= uploads, "{count} executions");
    for rebuild in &rebuilds {
        let state = rebuild.state();
        assert_eq!(state.as_object().unwrap().len(), count, "{}", rebuild.language);
    }
    drop(running);
    fleet.stop().await.stop().await;
}

#[expect(clippy::disallowed_methods, reason = "a test has no configuration to be parsed")]
fn uploads() -> u32 {
    let given = std::env::var("ASSAY_RECEIVER_UPLOADS").unwrap_or_else(|_| UPLOADS.to_owned());
    given.parse().unwrap()
}

/// Uploads reports, each of which is repeated until it is acknowledged.
async fn work(api: &Api, project: &str, client: usize, uploads: usize) {
    let sets = format!("{project}/testsets");
    let set = loop {
        // No set of this name exists, unless its answer was lost.
        let body = json!({"Name": format!("Set {client} {}", Uuid::now_v7())});
        let created = api.request(Method::POST, &sets).json(&body).timeout(ANSWER).send().await;
        if let Ok(created) = created
            && created.status() == 201
            && let Ok(set) = created.json::<serde_json::Value>().await
        {
            break format!("{sets}/{}", id(&set));
        }
        pause().await;
    };
    for number in 0..uploads {
        let key = Uuid::now_v7().to_string();
        loop {
            let request = api.request(Method::POST, &format!("{set}/results")).timeout(ANSWER);
            let request = request.header("Idempotency-Key", &key);
            let request = request.header("Content-Type", "application/xml");
            // Without an answer, it is not known whether the upload was stored.
            if let Ok(answer) = request.body(report(client, number)).send().await {
                match answer.status().as_u16() {
                    201 => break,
                    429 | 503 => {}
                    status => panic!("{status} {}", answer.text().await.unwrap_or_default()),
                }
            }
            pause().await;
        }
    }
}

async fn pause() {
    tokio::time::interval_at(Instant::now() + PAUSE, PAUSE).tick().await;
}

/// Kills every program of Assay and then both receivers, one after the other, until cancelled and at least once.
/// Returns the receivers, which run.
async fn kill(fleet: &mut Fleet, rebuilds: &[Rebuild], stop: &CancellationToken) -> Vec<Child> {
    let mut running: Vec<Child> = rebuilds.iter().map(Rebuild::start).collect();
    loop {
        for replica in &mut fleet.replicas {
            pause().await;
            replica.kill().await;
            replica.start();
            let replica = &*replica;
            eventually(replica.name(), || async { replica.is_ready().await.then_some(()) }).await;
        }
        for (receiver, rebuild) in running.iter_mut().zip(rebuilds) {
            receiver.kill().await.unwrap();
            *receiver = rebuild.start();
        }
        if stop.is_cancelled() {
            return running;
        }
    }
}
