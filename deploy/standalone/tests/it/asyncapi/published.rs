//! Comparison of published messages with the document.

use std::collections::BTreeSet;

use assay_testkit::eventually;
use async_nats::{
    Client, HeaderMap,
    jetstream::{self, consumer::pull::OrderedConfig},
};
use futures::StreamExt as _;
use jsonschema::Validator;
use serde_json::{Value, json};

use super::{document, problems, tour, validator};
use crate::world::World;

const STREAMS: [&str; 4] =
    ["ASSAY_IDENTITY", "ASSAY_CATALOG", "ASSAY_EXECUTION", "ASSAY_NOTIFICATIONS"];

/// A stored message.
struct Message {
    subject: String,
    headers: Value,
    payload: Value,
}

/// A message of the document and its channel.
struct Documented {
    name: String,
    address: Vec<String>,
    /// The actions of the channel; empty if any action is allowed.
    actions: Vec<String>,
    /// The allowed `type`s of the event; empty if any type is allowed.
    kinds: Vec<String>,
    headers: Validator,
    payload: Validator,
}

impl Documented {
    fn all(document: &Value) -> Vec<Self> {
        let mut all = Vec::new();
        for channel in document["channels"].as_object().unwrap().values() {
            for reference in channel["messages"].as_object().unwrap().values() {
                all.push(Self::of(document, channel, reference["$ref"].as_str().unwrap()));
            }
        }
        all
    }

    fn of(document: &Value, channel: &Value, reference: &str) -> Self {
        let message = document.pointer(&reference[1..]).unwrap();
        let texts = |list: &Value| -> Vec<String> {
            let texts = list.as_array().into_iter().flatten();
            texts.map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        let part = |name: &str| {
            let at = format!("{reference}/{name}");
            validator(&json!({"allOf": [{"$ref": at}], "components": document["components"]}))
        };
        Self {
            name: reference.rsplit('/').next().unwrap().to_owned(),
            address: channel["address"].as_str().unwrap().split('.').map(Into::into).collect(),
            actions: texts(&channel["parameters"]["action"]["enum"]),
            kinds: texts(&message["payload"]["properties"]["type"]["enum"]),
            headers: part("headers"),
            payload: part("payload"),
        }
    }

    /// Whether the subject and the type of a message match.
    fn matches(&self, message: &Message) -> bool {
        let tokens: Vec<&str> = message.subject.split('.').collect();
        let fits = |(expected, token): (&String, &&str)| match expected.as_str() {
            "{action}" if !self.actions.is_empty() => self.actions.iter().any(|a| a == token),
            expected => expected.starts_with('{') || expected == *token,
        };
        let kind = message.payload["type"].as_str().unwrap_or_default();
        tokens.len() == self.address.len()
            && self.address.iter().zip(&tokens).all(fits)
            && (self.kinds.is_empty() || self.kinds.iter().any(|known| known == kind))
    }

    fn problems(&self, message: &Message) -> Vec<String> {
        let mut found = problems(&self.headers, &message.headers);
        found.extend(problems(&self.payload, &message.payload));
        found
    }
}

/// Forbids undocumented fields. The document itself allows them, since versions may add fields.
pub(super) fn close(schema: &mut Value) {
    if schema.get("properties").is_some_and(Value::is_object) {
        schema["additionalProperties"] = json!(false);
    }
    match schema {
        Value::Object(fields) => fields.values_mut().for_each(close),
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

async fn messages_of(nats: &Client, stream: &str) -> Vec<Message> {
    let jetstream = jetstream::new(nats.clone());
    let stream = jetstream.get_stream(stream).await.unwrap();
    let count = usize::try_from(stream.cached_info().state.messages).unwrap();
    let consumer = stream.create_consumer(OrderedConfig::default()).await.unwrap();
    let messages = consumer.messages().await.unwrap().take(count).map(|message| {
        let message = message.unwrap();
        Message {
            subject: message.subject.to_string(),
            headers: as_json(message.headers.as_ref()),
            payload: serde_json::from_slice(&message.payload).unwrap_or_default(),
        }
    });
    messages.collect().await
}

fn as_json(headers: Option<&HeaderMap>) -> Value {
    let headers = headers.into_iter().flat_map(HeaderMap::iter);
    headers.map(|(name, values)| (name.to_string(), json!(values[0].as_str()))).collect()
}

async fn everything(nats: &Client) -> Vec<Message> {
    let mut all = Vec::new();
    for stream in STREAMS {
        all.extend(messages_of(nats, stream).await);
    }
    all
}

/// The names of a message in the document, with its action.
fn names(documented: &[Documented], message: &Message) -> Vec<String> {
    let fitting = documented.iter().filter(|documented| documented.matches(message));
    let kind = message.payload["type"].as_str().unwrap_or_default();
    let name = |documented: &Documented| match documented.kinds[..] {
        [] => documented.name.clone(),
        _ => format!("{} {kind}", documented.name),
    };
    fitting.map(name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn published_and_documented_messages_are_the_same() {
    let mut document = document::asyncapi();
    close(&mut document["components"]);
    let documented = Documented::all(&document);
    let expected: BTreeSet<String> = documented
        .iter()
        .flat_map(|one| match one.kinds[..] {
            [] => vec![one.name.clone()],
            _ => one.kinds.iter().map(|kind| format!("{} {kind}", one.name)).collect(),
        })
        .collect();

    let world = World::start_with(|settings| settings.leases.queue_seconds = 1).await;
    let nats = async_nats::connect(world.nats_url()).await.unwrap();
    tour::of(&world, &nats).await;
    let all = eventually("every documented message", || async {
        let all = everything(&nats).await;
        let seen: BTreeSet<String> =
            all.iter().flat_map(|message| names(&documented, message)).collect();
        let missing: Vec<_> = expected.difference(&seen).collect();
        if !missing.is_empty() {
            eprintln!("tour.rs has not made these events happen: {missing:#?}");
        }
        missing.is_empty().then_some(all)
    })
    .await;

    let mut wrong = BTreeSet::new();
    for message in &all {
        let fitting: Vec<_> = documented.iter().filter(|one| one.matches(message)).collect();
        let [one] = fitting[..] else {
            wrong.insert(format!("{} is {} messages", message.subject, fitting.len()));
            continue;
        };
        for problem in one.problems(message) {
            wrong.insert(format!("{} {problem}", one.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    world.stop().await;
}
