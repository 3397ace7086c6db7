//! Other systems that read notifications, as `docs/subscribers.md` has them do.

mod guarded;

use std::{
    env,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use assay_events::{Interest, Stream, Subscribers};
use assay_testkit::{Api, eventually, test_dir};
use async_nats::{Client, jetstream};
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use uuid::Uuid;

use crate::world::World;

const NOTIFICATIONS: Stream = Stream::of("notifications");

/// One of the examples, and the file that it keeps notifications in.
struct Subscriber {
    command: Vec<String>,
    file: PathBuf,
}

impl Subscriber {
    fn new(program: Vec<String>, arguments: &[&str; 2], domain: Option<&str>) -> Self {
        let file = test_dir().unwrap().join(Uuid::now_v7().to_string());
        let [url, name] = arguments.map(str::to_owned);
        let arguments = [url, name, file.to_str().unwrap().to_owned()];
        let domain = domain.map(str::to_owned);
        Self { command: program.into_iter().chain(arguments).chain(domain).collect(), file }
    }

    fn start(&self) -> Child {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).stdin(Stdio::null()).kill_on_drop(true);
        command.spawn().unwrap_or_else(|error| panic!("{:?}: {error}", self.command))
    }

    /// The ids of what it has got, in the order of their coming.
    fn got(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        let complete = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
        let id = |line| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().map(Into::into);
        complete.lines().map(|line| id(line).unwrap()).collect()
    }

    async fn gets(&self, count: usize) -> Vec<String> {
        eventually("a subscriber gets notifications", || async {
            Some(self.got()).filter(|got| got.len() >= count)
        })
        .await
    }
}

/// The example in Rust, which is built with the tests.
fn rust() -> Vec<String> {
    let tests = env::current_exe().unwrap();
    let example = tests.ancestors().nth(2).unwrap().join("examples/subscriber");
    vec![example.to_str().unwrap().to_owned()]
}

/// The example in Python, with what `deploy/local/install test` has installed for it.
fn python() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let [python, example] = ["target/tools/python/bin/python", "docs/subscribers/subscriber.py"]
        .map(|path| root.join(path).to_str().unwrap().to_owned());
    assert!(Path::new(&python).exists(), "run deploy/local/install test");
    vec![python, example]
}

async fn subscribe(nats: &Client, name: &str) {
    let subscribers = Subscribers::of(NOTIFICATIONS, nats.clone());
    let patience = Duration::from_secs(2);
    eventually("a stream to subscribe to", || async {
        subscribers.add(name, &Interest::default(), 1, patience).await.ok()
    })
    .await;
}

async fn tell(api: &Api, count: usize) {
    for number in 0..count {
        let told = json!({"Source": "Build", "SourceId": number.to_string(), "Target": "Cluster",
                          "Action": "Deployed"});
        api.post("/api/notifications", told).await.created();
    }
}

/// The ids of all messages in the stream, in its order.
async fn published(nats: &Client) -> Vec<String> {
    let jetstream = jetstream::new(nats.clone());
    let stream = jetstream.get_stream(NOTIFICATIONS.name()).await.unwrap();
    let last = stream.cached_info().state.last_sequence;
    let ids = (1..=last).map(async |sequence| {
        let message = stream.get_raw_message(sequence).await.unwrap();
        message.headers.get("Nats-Msg-Id").unwrap().to_string()
    });
    join_all(ids).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_see_every_notification_and_go_on_where_they_were() {
    let world = World::start().await;
    let nats = async_nats::connect(world.nats_url()).await.unwrap();
    let mut subscribers = Vec::new();
    for (name, program) in [("rust", rust()), ("python", python())] {
        subscribe(&nats, name).await;
        subscribers.push(Subscriber::new(program, &[world.nats_url(), name], None));
    }

    // Killed at work, three times.
    for round in 1..=3 {
        let running: Vec<Child> = subscribers.iter().map(Subscriber::start).collect();
        tokio::join!(tell(&world.api, 40), async {
            for subscriber in &subscribers {
                subscriber.gets(round * 40 - 20).await;
            }
        });
        for mut child in running {
            child.kill().await.unwrap();
        }
    }
    let running: Vec<Child> = subscribers.iter().map(Subscriber::start).collect();
    tell(&world.api, 5).await;

    let expected = eventually("all to be published", || async {
        Some(published(&nats).await).filter(|ids| ids.len() >= 125)
    })
    .await;
    for subscriber in &subscribers {
        assert_eq!(subscriber.gets(expected.len()).await, expected, "{:?}", subscriber.command);
    }
    drop(running);
    world.stop().await;
}
