//! Media types of bodies and responses, in the form that generators of clients understand.

use utoipa::openapi::{
    Content, KnownFormat, RefOr, Required, Schema, SchemaFormat,
    path::Operation,
    schema::{SchemaType, Type},
};

/// Describes files as binary, and bodies that may be absent as not required instead of null.
pub(super) fn describe(operation: &mut Operation) {
    for response in operation.responses.responses.values_mut() {
        let RefOr::T(response) = response else { continue };
        for (media_type, content) in &mut response.content {
            if let RefOr::T(content) = content
                && !is_text(media_type)
            {
                describe_file(content);
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
