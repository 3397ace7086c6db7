//! Generates the AsyncAPI document from the contracts and the list of event types.

use assay_events::{EventType, event_names};
use assay_proto::{
    events::{
        AppliancesChanged, AuditRecorded, ChangedRecord, ExecutionChanged, RecordChanged,
        RecordsChanged, ReportState, ReportsChanged, RetentionChanged, SecretsSeen,
    },
    notification::Notification,
};
use serde_json::{Map, Value, json};
use utoipa::{PartialSchema, ToSchema};

use super::examples;

/// Groups the event types of a service and a kind of record by their message.
fn groups() -> Vec<Vec<EventType>> {
    // Operators publish these events to repair other services; they have the same data as the event
    // before.
    let is_documented = |event_type: &EventType| event_type.action() != "Rebuilt";
    let key = |event_type: &EventType| (event_type.noun(), event_type.message());
    let mut groups: Vec<Vec<EventType>> = Vec::new();
    for event_type in EventType::all().filter(is_documented) {
        match groups.iter_mut().find(|group| key(&group[0]) == key(&event_type)) {
            Some(group) => group.push(event_type),
            None => groups.push(vec![event_type]),
        }
    }
    groups
}

const ABOUT: &str = "\
Events that Assay publishes on NATS JetStream.

The channels `notifications` and `notifications.client` are stable: later versions keep all fields and may \
add others. `docs/subscribers.md` explains how to subscribe, and leads from an event to its record. Webhooks \
and server-sent events have the same events. The events of the services, tagged \
`internal`, are for communication between Assay's programs. They are documented for operators and \
can change in every version. Other messages on subjects that begin with `assay.` are not stored in a \
stream and are private.

Messages are delivered at least once: detect duplicates by the `id` of an event, and sort by it. Events about \
one record are published in the order of its changes, and those of one service for one customer in the order of \
their transactions. Services do not wait for each other: the result of a test case may come before the creation \
of that test case. `TestSet.Completed` and `TestSet.Canceled` come after every `TestCase.Finished` of their \
execution, and `Statistic.TestCasesTotal` is their number.";

/// Returns the document.
pub(super) fn asyncapi() -> Value {
    let mut document = json!({
        "asyncapi": "3.0.0",
        "info": {
            "title": "Assay",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
            "tags": [
                {"name": "stable", "description": "A stable interface for other systems"},
                {"name": "internal", "description": "Communication between Assay's programs"},
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
            "notifications.client": of_clients(),
        },
        "operations": {},
        "components": {
            "securitySchemes": {"user": {"type": "userPassword"}},
            "parameters": {"customer": {"description": "Id of the customer"}},
            "schemas": schemas(),
            "messages": {
                "Notification": message(
                    "A notification",
                    &event("notifications", &any_noun("notifications"), "Notification"),
                    "Headers",
                ),
                "ClientNotification": message(
                    "A notification that a client has created",
                    &event_of_client(),
                    "Headers",
                ),
            },
        },
    });
    let messages = &mut document["components"]["messages"];
    messages["Notification"]["examples"] = examples::of_assay();
    messages["ClientNotification"]["examples"] = examples::of_client();
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

/// The types of notifications; Assay creates those of the examples.
fn any_noun(publisher: &str) -> Value {
    let pattern = format!(r"^io\.assay\.{publisher}\.[a-z0-9_-]+\.[a-z0-9_-]+\.v1$");
    let of_assay = |(source, action): (&str, &str)| {
        kind("notifications", &source.to_lowercase(), &action.to_lowercase())
    };
    match publisher {
        "client" => json!({"pattern": pattern}),
        _ => {
            json!({"pattern": pattern, "examples": event_names().map(of_assay).collect::<Vec<_>>()})
        }
    }
}

fn event_of_client() -> Value {
    let mut event = event("notifications", &any_noun("client"), "Notification");
    event["properties"]["source"] = json!({"pattern": r"^/assay/clients/[0-9a-f-]{36}$"});
    event
}

fn of_clients() -> Value {
    json!({
        "title": "Notifications of clients",
        "address": "assay.notifications.{customer}.client.{source}.{action}",
        "description": "The notifications that clients have created with `POST /api/notifications`, who choose \
            source and action. `source` of the event has the id of the user. Stream \
            `ASSAY_NOTIFICATIONS`. Stable: see above.",
        "tags": [{"name": "stable"}],
        "parameters": {
            "customer": {"$ref": "#/components/parameters/customer"},
            "source": {"description": "`Source` of the notification in lower case; \
                characters other than letters, digits and `-` are replaced by `_`"},
            "action": {"description": "`Action` of the notification in the same form"},
        },
        "messages": {"Notification": {"$ref": "#/components/messages/ClientNotification"}},
    })
}

fn notifications() -> Value {
    json!({
        "title": "Notifications",
        "address": "assay.notifications.{customer}.{source}.{action}",
        "description": "The notifications that Assay has created, of those that `GET /api/notifications` \
            lists. Stream `ASSAY_NOTIFICATIONS`. Stable: see above.",
        "tags": [{"name": "stable"}],
        "parameters": {
            "customer": {"$ref": "#/components/parameters/customer"},
            "source": {"description": "`Source` of the notification in lower case, such as `testcase`; \
                characters other than letters, digits and `-` are replaced by `_`"},
            "action": {"description": "`Action` of the notification in the same form, such as `created`"},
        },
        "messages": {"Notification": {"$ref": "#/components/messages/Notification"}},
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
            "action": {"description": "Action on the record", "enum": []},
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

/// Schema of an event with its envelope and data.
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

/// The envelope of all events.
fn envelope() -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    json!({
        "type": "object",
        "description": "CloudEvents 1.0 in structured mode, <https://cloudevents.io>",
        "required": ["specversion", "id", "source", "type", "subject", "time", "datacontenttype",
                     "tenantid", "data"],
        "properties": {
            "specversion": {"const": "1.0"},
            "id": {"type": "string", "format": "uuid", "description": "Id of the event. Duplicates \
                have the same id. For a notification, its `Id`"},
            "source": text("Service that published the event, as `/assay/<service>`, or the user whose client has \
                created it, as `/assay/clients/<user>`"),
            "type": text("Type of the event, as `io.assay.<service>.<noun>.<action>.v1`; `client` is the service of \
                those that clients have created"),
            "subject": text("Id of the record"),
            "time": {"type": "string", "format": "date-time", "description": "Time of the event"},
            "datacontenttype": {"const": "application/json"},
            "tenantid": {"type": "string", "format": "uuid", "description": "Id of the customer"},
            "traceparent": {"type": "string", "pattern": "^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$",
                "description": "W3C trace of the event, if any"},
            "tracestate": text("W3C trace state of the event, if any"),
            "data": {"description": "Data of the event"},
        },
    })
}

/// Schema of the headers of messages, including those that NATS uses for delivery.
fn headers(own: &Value, message_id: &Value) -> Value {
    let mut headers = json!({
        "type": "object",
        "required": ["Content-Type", "Nats-Msg-Id"],
        "properties": {
            "Content-Type": {"const": "application/cloudevents+json"},
            "Nats-Msg-Id": message_id,
        },
        "patternProperties": {"^Nats-Expected-": {"description": "Used between Assay and NATS"}},
    });
    for (name, header) in own.as_object().into_iter().flatten() {
        headers["properties"][name] = header.clone();
    }
    headers
}

fn schemas() -> Value {
    let mut schemas = Vec::new();
    add_schemas::<RecordChanged>(&mut schemas);
    add_schemas::<RecordsChanged>(&mut schemas);
    add_schemas::<ChangedRecord>(&mut schemas);
    add_schemas::<SecretsSeen>(&mut schemas);
    add_schemas::<RetentionChanged>(&mut schemas);
    add_schemas::<AppliancesChanged>(&mut schemas);
    add_schemas::<ExecutionChanged>(&mut schemas);
    add_schemas::<ReportsChanged>(&mut schemas);
    add_schemas::<ReportState>(&mut schemas);
    add_schemas::<AuditRecorded>(&mut schemas);
    add_schemas::<Notification>(&mut schemas);
    let mut schemas: Map<String, Value> = schemas.into_iter().collect();
    schemas.insert("CloudEvent".to_owned(), envelope());
    let id = json!({"type": "string", "format": "uuid", "description": "`id` of the event"});
    let traced = json!({
        "traceparent": {"$ref": "#/components/schemas/CloudEvent/properties/traceparent"},
        "tracestate": {"$ref": "#/components/schemas/CloudEvent/properties/tracestate"},
    });
    schemas.insert("Headers".to_owned(), headers(&traced, &id));
    Value::Object(schemas)
}

/// Adds the schema of a contract message and those of its nested messages.
fn add_schemas<T: ToSchema + PartialSchema>(schemas: &mut Vec<(String, Value)>) {
    let mut found = Vec::new();
    T::schemas(&mut found);
    found.push((T::name().into_owned(), T::schema()));
    let as_json = |schema| serde_json::to_value(schema).expect("a schema is JSON");
    schemas.extend(found.into_iter().map(|(name, schema)| (name, as_json(schema))));
}
