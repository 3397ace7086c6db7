//! Other systems that read notifications, as `docs/subscribers.md` has them do.

use std::{
    env,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use assay_events::{Interest, Stream, Subscribers};
use assay_testkit::{Api, eventually, test_dir};
use async_nats::{
    Client, ConnectOptions,
    jetstream::{self, consumer::PullConsumer},
};
use futures::{StreamExt as _, future::join_all};
use serde_json::{Value, json};
use tokio::{
    process::{Child, Command},
    time::timeout,
};
use uuid::Uuid;

use crate::{
    junit, process,
    world::{World, as_nats_user, id, nats_password, project},
};

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

#[tokio::test(flavor = "multi_thread")]
async fn with_the_configuration_that_is_shipped_programs_work_and_a_subscriber_only_reads() {
    let world = World::start_guarded().await;
    let operator = connect_as(&world, "operator").await;
    subscribe(&operator, "billing").await;
    let url = as_nats_user(world.nats_url(), "billing");
    let subscriber = Subscriber::new(python(), &[&url, "billing"], Some("ASSAY"));
    let _running = subscriber.start();
    // Something of everybody: identity, catalog, execution, and a revocation.
    let member = world.member(&world.api, "bob@example.org", "Login, Read").await;
    let project = project(&world.api).await;
    let set = world.api.post(&format!("{project}/testsets"), json!({"Name": "All"})).await;
    let set = format!("{project}/testsets/{}", id(&set.created()));
    junit::upload(&world.api, &set, junit::report(3)).await.created();
    world.api.delete(&format!("/api/users/{}", member.id)).await.expect(204);
    eventually("the end of a token", || async {
        (member.api.get("/api/projects").await.status == 401).then_some(())
    })
    .await;
    eventually("results in the catalog", || async {
        let cases = world.api.get(&format!("{project}/testcases")).await.ok();
        (cases[0]["LastResult"] == "Passed").then_some(())
    })
    .await;
    let stored = eventually("notifications of all services", || async {
        let stored = world.api.get("/api/notifications").await.ok();
        let of = |source: &str| stored.as_array().unwrap().iter().any(|n| n["Source"] == source);
        ["User", "TestSet", "TestCase"].iter().all(|source| of(source)).then_some(stored)
    })
    .await;
    let stored = stored.as_array().unwrap();
    assert!(subscriber.gets(stored.len()).await.len() >= stored.len());
    // What a program cannot apply it puts aside, and an operator finds it.
    for subject in ["assay.execution.x", "assay.catalog.x.secrets.x", "assay.catalog.x.retention.x"]
    {
        let published = jetstream::new(operator.clone()).publish(subject, "{".into()).await;
        published.unwrap().await.unwrap();
    }
    let operate = async |arguments: [&str; 3]| {
        let mut command = process::command(&process::data_dir());
        command.env("ASSAY_NATS_URL", as_nats_user(world.nats_url(), "operator"));
        String::from_utf8(command.args(arguments).output().await.unwrap().stdout).unwrap()
    };
    for (consumer, letters) in
        [("catalog", "1 "), ("execution", "1 "), ("identity", "1 "), ("notification", "3 ")]
    {
        let of_consumer = format!("--consumer={consumer}");
        let list = ["dead-letters", "list", &of_consumer];
        eventually("dead letters of everybody", || async {
            let listed = operate(list).await;
            listed.lines().last()?.starts_with(letters).then_some(())
        })
        .await;
    }
    assert_eq!(operate(["dead-letters", "drop", "--all"]).await, "6 dead letters dropped\n");
    let log = world.nats_log();
    assert!(!log.contains("Violation"), "a program lacks a permission: {log}");

    // The subscriber gets nowhere else, neither directly nor by having messages sent there.
    let billing = connect_as(&world, "billing").await;
    let before = messages(&operator).await;
    let mut heard = billing.subscribe("assay.>").await.unwrap();
    subscribe(&operator, "other").await;
    for stream in ["ASSAY_NOTIFICATIONS", "ASSAY_CATALOG"] {
        let domain = jetstream::with_domain(billing.clone(), "ASSAY");
        assert!(domain.get_stream(stream).await.is_err());
        let other: Result<PullConsumer, _> = domain.get_consumer_from_stream("other", stream).await;
        assert!(other.is_err());
    }
    let next = "$JS.ASSAY.API.CONSUMER.MSG.NEXT.ASSAY_NOTIFICATIONS";
    for (subject, reply) in [
        ("assay.catalog.x", None),
        ("assay.notifications.x", None),
        ("assay.revocations", None),
        (&format!("{next}.billing"), Some("assay.catalog.x")),
        (&format!("{next}.other"), Some("mine")),
    ] {
        let payload = "{}".into();
        match reply {
            None => billing.publish(subject.to_owned(), payload).await.unwrap(),
            Some(to) => {
                billing.publish_with_reply(subject.to_owned(), to, payload).await.unwrap();
            }
        }
    }
    billing.flush().await.unwrap();
    tell(&world.api, 1).await;
    subscriber.gets(stored.len() + 1).await;
    assert_eq!(messages(&operator).await, [before[0], before[1] + 1]);
    while let Ok(Some(message)) = timeout(Duration::from_millis(200), heard.next()).await {
        let own = message.subject.as_str();
        assert!(own.ends_with(".x") || own == "assay.revocations", "heard {own}");
    }

    // Nor does a program: what it is refused does not arrive.
    let catalog = connect_as(&world, "catalog").await;
    catalog.publish("assay.notifications.x", "{}".into()).await.unwrap();
    catalog.publish("assay.revocations", "{}".into()).await.unwrap();
    catalog.flush().await.unwrap();
    let refused = |subject: &str| {
        let line = format!("Publish Violation - User \"catalog\", Subject {subject:?}");
        world.nats_log().contains(&line)
    };
    eventually("refusals", || async {
        (refused("assay.notifications.x") && refused("assay.revocations")).then_some(())
    })
    .await;
    assert_eq!(messages(&operator).await, [before[0], before[1] + 1]);
    world.stop().await;
}

async fn connect_as(world: &World, user: &str) -> Client {
    let options = ConnectOptions::with_user_and_password(user.to_owned(), nats_password(user));
    let options = options.custom_inbox_prefix(format!("_INBOX_assay.{user}"));
    options.connect(world.nats_url()).await.unwrap()
}

/// How many messages the catalog's stream and that of the notifications have.
async fn messages(operator: &Client) -> [u64; 2] {
    let jetstream = jetstream::new(operator.clone());
    let mut counts = [0; 2];
    for (count, stream) in counts.iter_mut().zip(["ASSAY_CATALOG", "ASSAY_NOTIFICATIONS"]) {
        *count = jetstream.get_stream(stream).await.unwrap().cached_info().state.messages;
    }
    counts
}
