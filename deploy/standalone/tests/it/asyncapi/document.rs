//! The AsyncAPI document, made from the contracts and a list of what is published.

use assay_events::EventType;
use assay_proto::{
    events::{
        ExecutionChanged, RecordChanged, ReportState, ReportsChanged, RetentionChanged, SecretsSeen,
    },
    notification::Notification,
};
use serde_json::{Map, Value, json};
use utoipa::{PartialSchema, ToSchema};

/// The types of events of one service and one kind of record that carry the same message.
fn groups() -> Vec<Vec<EventType>> {
    // Operators publish these to repair other services; they carry the same as the event before.
    let is_documented = |event_type: &EventType| event_type.action() != "Rebuilt";
    let types: Vec<_> = EventType::all().filter(is_documented).collect();
    let key = |event_type: &EventType| (event_type.noun(), event_type.message());
    types.chunk_by(|one, next| key(one) == key(next)).map(<[_]>::to_vec).collect()
}

const ABOUT: &str = "\
What Assay publishes on NATS JetStream.

The channel `notifications` is promised: what a message holds today it holds in later versions, too; \
fields may be added. Build on it; `docs/subscribers.md` tells how. The events of the single services \
and dead letters, tagged `internal`, are what Assay's own programs tell each other. They are \
described so that an operator can read them, and change whenever Assay does. What else is sent on \
subjects that begin with `assay.` is not kept in a stream and concerns nobody else.

Messages are delivered at least once: tell by the `id` of an event whether it is known. Those of one \
customer are published in the order in which things happened.";

/// The whole document.
pub(super) fn asyncapi() -> Value {
    let mut document = json!({
        "asyncapi": "3.0.0",
        "info": {
            "title": "Assay",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
            "tags": [
                {"name": "stable", "description": "What other systems can build on"},
                {"name": "internal", "description": "What Assay's programs tell each other"},
            ],
        },
        "defaultContentType": "application/cloudevents+json",
        "servers": {"nats": {
            "host": "127.0.0.1:4222",
            "protocol": "nats",
            "description": "A NATS server with JetStream, version 2.9 or later",
            "security": [{"$ref": "#/components/securitySchemes/user"}],
        }},
        "channels": {
            "notifications": notifications(),
            "dead-letters": dead_letters(),
        },
        "operations": {},
        "components": {
            "securitySchemes": {"user": {"type": "userPassword"}},
            "parameters": {"customer": {"description": "The id of the customer"}},
            "schemas": schemas(),
            "messages": {
                "Notification": message(
                    "A notification, whoever made it",
                    &event("notifications", &any_noun(), "Notification"),
                    "Headers",
                ),
                "DeadLetter": message(
                    "What a service could not apply, as it was: usually an event, but it may be \
                     anything",
                    &json!({}),
                    "DeadLetterHeaders",
                ),
            },
        },
    });
    for group in groups() {
        let (service, noun, data) = (group[0].service(), group[0].noun(), group[0].message());
        let actions: Vec<_> = group.iter().map(|one| one.action().to_ascii_lowercase()).collect();
        let name = format!("{service}.{noun}");
        let key = format!("{service}.{noun}.{data}");
        let kinds = actions.iter().map(|action| kind(service, noun, action));
        let kinds = json!({"enum": kinds.collect::<Vec<_>>()});
        let title = format!("Events of the {service} service: {}", noun.replace('_', " "));
        document["components"]["messages"][&key] =
            message(&title, &event(service, &kinds, data), "Headers");
        let channels = document["channels"].as_object_mut().expect("an object");
        let channel = channels.entry(name).or_insert_with(|| channel(service, noun, &title));
        channel["messages"][data] = json!({"$ref": format!("#/components/messages/{key}")});
        let known = channel["parameters"]["action"]["enum"].as_array_mut().expect("an array");
        known.extend(actions.iter().map(|action| json!(action)));
    }
    let names: Vec<String> = keys(&document["channels"]);
    for name in names {
        let channel = json!({"$ref": format!("#/channels/{name}")});
        let about = &document["channels"][&name];
        let (summary, description) = (about["title"].clone(), about["description"].clone());
        document["operations"][format!("publish.{name}")] = json!({"action": "send", "channel": channel, "summary": summary,
                   "description": description});
    }
    document
}

fn keys(object: &Value) -> Vec<String> {
    object.as_object().map(|object| object.keys().cloned().collect()).unwrap_or_default()
}

fn kind(service: &str, noun: &str, action: &str) -> String {
    format!("io.assay.{service}.{noun}.{action}.v1")
}

fn any_noun() -> Value {
    json!({"pattern": r"^io\.assay\.notifications\.[a-z0-9_-]+\.[a-z0-9_-]+\.v1$"})
}

fn notifications() -> Value {
    json!({
        "title": "Notifications",
        "address": "assay.notifications.{customer}.{source}.{action}",
        "description": "Everything that `GET /api/notifications` shows, as it is added. Stream \
            `ASSAY_NOTIFICATIONS`. Promised: see above.",
        "tags": [{"name": "stable"}],
        "parameters": {
            "customer": {"$ref": "#/components/parameters/customer"},
            "source": {"description": "The notification's `Source` in lower case, such as `testcase`; \
                what is neither letter, digit nor `-` is `_`"},
            "action": {"description": "The notification's `Action`, likewise, such as `created`"},
        },
        "messages": {"Notification": {"$ref": "#/components/messages/Notification"}},
    })
}

fn dead_letters() -> Value {
    json!({
        "title": "Dead letters",
        "address": "assay.dead-letters.{service}.{consumer}",
        "description": "Events that a service could not apply, for an operator: see \
            `assay dead-letters`. Stream `ASSAY_DEAD_LETTERS`, kept for 90 days.",
        "tags": [{"name": "internal"}],
        "parameters": {
            "service": {"description": "Whose event it is"},
            "consumer": {"description": "Who could not apply it"},
        },
        "messages": {"DeadLetter": {"$ref": "#/components/messages/DeadLetter"}},
    })
}

fn channel(service: &str, noun: &str, title: &str) -> Value {
    json!({
        "title": title,
        "address": format!("assay.{service}.{{customer}}.{noun}.{{action}}"),
        "description": format!("Stream `ASSAY_{}`.", service.to_uppercase()),
        "tags": [{"name": "internal"}],
        "parameters": {
            "customer": {"$ref": "#/components/parameters/customer"},
            "action": {"description": "What has happened", "enum": []},
        },
        "messages": {},
    })
}

fn message(title: &str, payload: &Value, headers: &str) -> Value {
    json!({
        "title": title,
        "contentType": "application/cloudevents+json",
        "headers": {"$ref": format!("#/components/schemas/{headers}")},
        "payload": payload,
    })
}

/// The envelope of a kind of event, with its data.
fn event(service: &str, kind: &Value, data: &str) -> Value {
    let envelope = envelope();
    let all = keys(&envelope["properties"]);
    let mut properties: Map<String, Value> = all
        .iter()
        .map(|name| {
            let at = format!("#/components/schemas/CloudEvent/properties/{name}");
            (name.clone(), json!({"$ref": at}))
        })
        .collect();
    properties.insert("source".to_owned(), json!({"const": format!("/assay/{service}")}));
    properties.insert("type".to_owned(), kind.clone());
    let data = json!({"$ref": format!("#/components/schemas/{data}")});
    properties.insert("data".to_owned(), data);
    json!({
        "type": "object",
        "required": envelope["required"],
        "properties": properties,
    })
}

/// An event as we write it.
fn envelope() -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    json!({
        "type": "object",
        "description": "CloudEvents 1.0 in structured mode, <https://cloudevents.io>",
        "required": ["specversion", "id", "source", "type", "subject", "time", "datacontenttype",
                     "tenantid", "data"],
        "properties": {
            "specversion": {"const": "1.0"},
            "id": {"type": "string", "format": "uuid", "description": "Whatever comes twice has the \
                same id, which for a notification is its `Id`"},
            "source": text("Who tells of it: `/assay/<service>`"),
            "type": text("What has happened: `io.assay.<service>.<noun>.<action>.v1`"),
            "subject": text("The id of the record"),
            "time": {"type": "string", "format": "date-time", "description": "When it happened"},
            "datacontenttype": {"const": "application/json"},
            "tenantid": {"type": "string", "format": "uuid", "description": "The customer"},
            "traceparent": {"type": "string", "pattern": "^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$",
                "description": "The W3C trace that it is part of, if there is one"},
            "tracestate": text("What goes with `traceparent`, if anything does"),
            "data": {"description": "What has happened, in full"},
        },
    })
}

/// Headers of messages: those that are for subscribers, and those of delivery.
fn headers(own: &Value, message_id: &Value) -> Value {
    let mut headers = json!({
        "type": "object",
        "required": ["Content-Type", "Nats-Msg-Id"],
        "properties": {
            "Content-Type": {"const": "application/cloudevents+json"},
            "Nats-Msg-Id": message_id,
        },
        "patternProperties": {"^Nats-Expected-": {"description": "Between Assay and NATS"}},
    });
    for (name, header) in own.as_object().into_iter().flatten() {
        headers["properties"][name] = header.clone();
    }
    headers
}

fn schemas() -> Value {
    let mut schemas = Vec::new();
    of_message::<RecordChanged>(&mut schemas);
    of_message::<SecretsSeen>(&mut schemas);
    of_message::<RetentionChanged>(&mut schemas);
    of_message::<ExecutionChanged>(&mut schemas);
    of_message::<ReportsChanged>(&mut schemas);
    of_message::<ReportState>(&mut schemas);
    of_message::<Notification>(&mut schemas);
    let mut schemas: Map<String, Value> = schemas.into_iter().collect();
    schemas.insert("CloudEvent".to_owned(), envelope());
    let id = json!({"type": "string", "format": "uuid", "description": "The `id` of the event"});
    let text = |description: &str| json!({"type": "string", "description": description});
    let traced = json!({
        "traceparent": {"$ref": "#/components/schemas/CloudEvent/properties/traceparent"},
        "tracestate": {"$ref": "#/components/schemas/CloudEvent/properties/tracestate"},
        "Assay-Consumer": text("Only on a dead letter that is delivered again: the one consumer it \
            is for"),
    });
    schemas.insert("Headers".to_owned(), headers(&traced, &id));
    let why = json!({
        "Assay-Reason": text("Why it could not be applied"),
        "Assay-Tries": text("How often that was tried"),
        "Assay-Subject": text("The subject that it was published on"),
    });
    let own_id = text("Names the message and the consumer");
    schemas.insert("DeadLetterHeaders".to_owned(), headers(&why, &own_id));
    Value::Object(schemas)
}

/// A message of the contracts, and those that it holds.
fn of_message<T: ToSchema + PartialSchema>(schemas: &mut Vec<(String, Value)>) {
    let mut found = Vec::new();
    T::schemas(&mut found);
    found.push((T::name().into_owned(), T::schema()));
    let as_json = |schema| serde_json::to_value(schema).expect("a schema is JSON");
    schemas.extend(found.into_iter().map(|(name, schema)| (name, as_json(schema))));
}
