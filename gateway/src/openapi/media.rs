//! Media types of bodies and responses, in the form that generators of clients understand.

use utoipa::openapi::{
    Content, KnownFormat, ObjectBuilder, RefOr, Required, Schema, SchemaFormat,
    path::Operation,
    schema::{SchemaType, Type},
};

/// Media type of streams of server-sent events.
const EVENTS: &str = "text/event-stream";

/// Describes files as binary, streams by their events, and bodies that may be absent as not required instead of null.
pub(super) fn describe(operation: &mut Operation) {
    for response in operation.responses.responses.values_mut() {
        let RefOr::T(response) = response else { continue };
        for (media_type, content) in &mut response.content {
            let RefOr::T(content) = content else { continue };
            if !is_text(media_type) {
                describe_file(content);
            } else if media_type == EVENTS {
                content.schema = content.schema.take().map(event);
            }
        }
    }
    let Some(RefOr::T(body)) = &mut operation.request_body else { return };
    for (media_type, content) in &mut body.content {
        let RefOr::T(content) = content else { continue };
        if !is_text(media_type) {
            describe_file(content);
        }
        if let Some(schema) = content.schema.as_ref().and_then(without_null) {
            content.schema = Some(schema);
            body.required = Some(Required::False);
        }
    }
}

/// Whether clients read it as text or as JSON.
fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/")
        || media_type.ends_with("json") && !media_type.ends_with("ndjson")
}

fn describe_file(content: &mut Content) {
    if let Some(RefOr::T(Schema::Object(schema))) = &mut content.schema
        && schema.schema_type == SchemaType::Type(Type::String)
    {
        schema.format = Some(SchemaFormat::KnownFormat(KnownFormat::Binary));
    }
}

/// Returns the schema of an event. Its data is text, which has a value of this schema as JSON.
fn event(data: RefOr<Schema>) -> RefOr<Schema> {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let data = text()
        .description(Some("The data of the event."))
        .content_media_type("application/json")
        .content_schema(Some(data));
    let retry = ObjectBuilder::new().schema_type(Type::Integer);
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some("A server-sent event. Events of other names may have other data."))
        .property("event", text().description(Some("Name of the event.")))
        .property("id", text().description(Some("Position after the event, for `Last-Event-ID`.")))
        .property("data", data)
        .property(
            "retry",
            retry.description(Some("Delay after which a client reconnects, in milliseconds.")),
        )
        .required("data")
        .into()
}

/// Returns the other one of two schemas of which one is null.
fn without_null(schema: &RefOr<Schema>) -> Option<RefOr<Schema>> {
    let RefOr::T(Schema::OneOf(choice)) = schema else { return None };
    let is_null = |schema: &RefOr<Schema>| match schema {
        RefOr::T(Schema::Object(schema)) => schema.schema_type == SchemaType::Type(Type::Null),
        _ => false,
    };
    let other = choice.items.iter().find(|schema| !is_null(schema))?;
    choice.items.iter().any(is_null).then(|| other.clone())
}

/// Returns the schema of a JSON body.
pub(super) fn body_schema(operation: &Operation) -> Option<&RefOr<Schema>> {
    let Some(RefOr::T(body)) = &operation.request_body else { return None };
    match body.content.get("application/json")? {
        RefOr::T(content) => content.schema.as_ref(),
        RefOr::Ref(_) => None,
    }
}

/// Returns the name of the schema that a schema refers to.
pub(super) fn name(schema: &RefOr<Schema>) -> Option<&str> {
    match schema {
        RefOr::Ref(name) => name.ref_location.rsplit('/').next(),
        RefOr::T(_) => None,
    }
}
