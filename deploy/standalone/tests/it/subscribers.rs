//! The examples of subscribers in `docs/subscribers.md`.

mod guarded;
mod rebuilt;

use std::{
    env,
    fs::OpenOptions,
    io::Write as _,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use assay_events::{Stream, SubscriberFilter, Subscribers};
use assay_testkit::{Api, eventually, test_dir};
use async_nats::{Client, jetstream};
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::{
    process::{Child, Command},
    time::timeout,
};
use uuid::Uuid;

use crate::world::{World, id};

const NOTIFICATIONS: Stream = Stream::of("notifications");

/// An example, and the file in which it stores notifications.
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
        command.args(&self.command[1..]).stdin(Stdio::null()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        command.spawn().unwrap_or_else(|error| panic!("{:?}: {error}", self.command))
    }

    /// The ids of stored notifications in the order of delivery.
    fn received(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        let complete = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
        let id = |line| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().map(Into::into);
        complete.lines().map(|line| id(line).unwrap()).collect()
    }

    async fn wait_for(&self, count: usize) -> Vec<String> {
        eventually("notifications of a subscriber", || async {
            Some(self.received()).filter(|received| received.len() >= count)
        })
        .await
    }
}

/// Appends the beginning of a line to a file.
fn cut_off(file: &Path) {
    let file = OpenOptions::new().append(true).open(file);
    file.unwrap().write_all(b"{\"id\": \"019aa8c1").unwrap();
}

/// The Rust example, which is built with the tests.
fn rust() -> Vec<String> {
    let tests = env::current_exe().unwrap();
    let example = tests.ancestors().nth(2).unwrap().join("examples/subscriber");
    vec![example.to_str().unwrap().to_owned()]
}

/// The Python example with the packages from `deploy/local/install test`.
fn python() -> Vec<String> {
    python_with("subscriber.py").to_vec()
}

/// Python, and a script of the documents.
fn python_with(script: &str) -> [String; 2] {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let script = format!("docs/subscribers/{script}");
    let [python, script] = ["target/tools/python/bin/python", &script]
        .map(|path| root.join(path).to_str().unwrap().to_owned());
    assert!(Path::new(&python).exists(), "run deploy/local/install test");
    [python, script]
}

async fn subscribe(nats: &Client, name: &str) {
    subscribe_with(nats, name, 1, Duration::from_secs(2)).await;
}

/// Adds a subscriber that may have several messages in flight.
async fn subscribe_with(nats: &Client, name: &str, at_once: u16, patience: Duration) {
    let subscribers = Subscribers::of(NOTIFICATIONS, nats.clone());
    eventually("a stream to subscribe to", || async {
        subscribers.add(name, &SubscriberFilter::default(), at_once, patience).await.ok()
    })
    .await;
}

/// Creates notifications, and returns the id of the last one.
async fn notify(api: &Api, count: usize) -> String {
    let mut last = String::new();
    for number in 0..count {
        let notification = json!({"Source": "Build", "SourceId": number.to_string(), "Target": "Cluster",
                          "Action": "Deployed"});
        let created = api.post("/api/notifications", notification).await.created();
        id(&created).clone_into(&mut last);
    }
    last
}

/// The ids of all messages in the stream, in order.
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

/// Waits until an example ends, and returns its exit code and what it reports.
async fn ended(subscriber: &Subscriber, child: Child) -> (Option<i32>, String) {
    let output = timeout(Duration::from_mins(1), child.wait_with_output()).await;
    let output = output.unwrap_or_else(|_| panic!("{:?} runs on", subscriber.command)).unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_end_and_name_the_reason_without_their_consumer() {
    let world = World::start().await;
    let nats = async_nats::connect(world.nats_url()).await.unwrap();
    subscribe(&nats, "other").await;
    for (name, program) in [("rust", rust()), ("python", python())] {
        let subscriber = Subscriber::new(program, &[world.nats_url(), name], None);
        let (code, reason) = ended(&subscriber, subscriber.start()).await;
        assert_eq!(code, Some(1), "{reason}");
        assert!(reason.contains(&format!("assay subscribers add {name}")), "{reason}");

        subscribe(&nats, name).await;
        let running = subscriber.start();
        notify(&world.api, 1).await;
        subscriber.wait_for(1).await;
        Subscribers::of(NOTIFICATIONS, nats.clone()).remove(name).await.unwrap();
        let (code, reason) = ended(&subscriber, running).await;
        assert_eq!(code, Some(1), "{reason}");
        assert!(reason.contains("was never added or was removed"), "{reason}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_receive_every_notification_and_resume_after_a_restart() {
    let world = World::start().await;
    let nats = async_nats::connect(world.nats_url()).await.unwrap();
    let mut subscribers = Vec::new();
    for (name, program) in [("rust", rust()), ("python", python())] {
        subscribe(&nats, name).await;
        subscribers.push(Subscriber::new(program, &[world.nats_url(), name], None));
    }

    // Kills the examples three times while they work, and while they write a line.
    for round in 1..=3 {
        let running: Vec<Child> = subscribers.iter().map(Subscriber::start).collect();
        tokio::join!(notify(&world.api, 40), async {
            for subscriber in &subscribers {
                subscriber.wait_for(round * 40 - 20).await;
            }
        });
        for mut child in running {
            child.kill().await.unwrap();
        }
        for subscriber in &subscribers {
            cut_off(&subscriber.file);
        }
    }
    let running: Vec<Child> = subscribers.iter().map(Subscriber::start).collect();
    let last = notify(&world.api, 5).await;

    let expected = eventually("all notifications to be published", || async {
        Some(published(&nats).await).filter(|ids| ids.last() == Some(&last))
    })
    .await;
    for subscriber in &subscribers {
        assert_eq!(subscriber.wait_for(expected.len()).await, expected, "{:?}", subscriber.command);
    }
    drop(running);
    world.stop().await;
}
