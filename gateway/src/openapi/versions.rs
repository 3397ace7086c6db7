//! Headers and parameters for the version of a record, its location and the next page of a list.

use serde_json::Value;
use utoipa::openapi::{
    Components, ObjectBuilder, Ref, RefOr, Required, Response, Schema,
    header::{Header, HeaderBuilder},
    path::{Operation, Parameter, ParameterBuilder, ParameterIn},
    schema::{SchemaType, Type},
};

use super::media::name;

const JSON: &str = "application/json";

/// Description of entity tags.
pub(crate) const ETAG: &str = "The `DataVersion` of the record, a dot and a fingerprint of the \
    body, in quotes: it changes whenever the body does";

/// Describes the body of an update: some of the fields of the record, and the version that the
/// change is based on. A GET with such a body is an update too.
pub(super) fn describe_update(
    method: &str,
    operation: &mut Operation,
    components: &mut Components,
) -> Option<()> {
    let RefOr::T(body) = operation.request_body.as_mut()? else { return None };
    let RefOr::T(content) = body.content.get_mut(JSON)? else { return None };
    let noun = name(content.schema.as_ref()?)?.strip_suffix("Input")?.to_owned();
    let record = components.schemas.get(noun.trim_end_matches("Data"))?.clone();
    if !matches!(method, "PUT" | "GET") || !is_versioned(&record) {
        return None;
    }
    let changes = format!("{noun}Changes");
    let mut schema = components.schemas.get(&format!("{noun}Input"))?.clone();
    if let RefOr::T(Schema::Object(object)) = &mut schema {
        let version = ObjectBuilder::new()
            .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
            .description(Some("The version that the change is based on; absent: any version."));
        object.required.clear();
        for (field, schema) in &mut object.properties {
            forbid_null_if_required(field, schema, &record);
        }
        object.properties.insert("DataVersion".to_owned(), version.into());
    }
    content.schema = Some(Ref::from_schema_name(&changes).into());
    body.required = Some(if method == "GET" { Required::False } else { Required::True });
    let known = components.schemas.insert(changes.clone(), schema.clone());
    assert!(known.is_none_or(|known| known == schema), "{changes} is the name of two schemas");
    let description = "The `ETag` of the record that the change is based on; only its version is \
                       compared";
    operation.parameters.get_or_insert_default().push(header_parameter("If-Match", description));
    Some(())
}

/// Removes `null` from the schema of a change if the record always has the field.
fn forbid_null_if_required(field: &str, change: &mut RefOr<Schema>, record: &RefOr<Schema>) {
    let RefOr::T(Schema::Object(record)) = record else { return };
    let current = record.properties.get(field).and_then(|field| serde_json::to_value(field).ok());
    let Ok(mut changed) = serde_json::to_value(&*change) else { return };
    if current.is_some_and(|mut current| !remove_null(&mut current))
        && remove_null(&mut changed)
        && let Ok(changed) = serde_json::from_value(changed)
    {
        *change = changed;
    }
}

/// Removes `null` from the types of a schema; returns whether it was among them.
fn remove_null(schema: &mut Value) -> bool {
    let is_null = |name: &Value| name == "null" || name.get("type").is_some_and(|t| t == "null");
    for kind in ["type", "oneOf"] {
        let Some(choices) = schema.get_mut(kind).and_then(Value::as_array_mut) else { continue };
        let count = choices.len();
        choices.retain(|choice| !is_null(choice));
        let removed = choices.len() < count;
        if let [only] = choices.as_slice() {
            let only = only.clone();
            match kind {
                "type" => schema[kind] = only,
                _ => *schema = only,
            }
        }
        return removed;
    }
    false
}

/// Describes the headers of successful responses.
pub(super) fn describe_headers(method: &str, operation: &mut Operation, components: &Components) {
    let mut revalidates = false;
    let in_pages = operation.parameters.iter().flatten().any(is_cursor);
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else { continue };
        if status == "201" {
            add_header(response, "Location", "The path of the new record");
        }
        if in_pages {
            add_header(response, "Link", "The URL of the next page, if there is one (RFC 8288)");
        }
        if has_version(response, components) {
            add_header(response, "ETag", ETAG);
            revalidates = method == "GET";
        }
    }
    if revalidates {
        let cached = header_parameter(
            "If-None-Match",
            "The `ETag` of the response that the client has cached",
        );
        operation.parameters.get_or_insert_default().push(cached);
        let unchanged = Response::new("The cached response of the client is current");
        operation.responses.responses.insert("304".to_owned(), unchanged.into());
    }
}

fn schema(response: &Response) -> Option<&RefOr<Schema>> {
    match response.content.get(JSON)? {
        RefOr::T(content) => content.schema.as_ref(),
        RefOr::Ref(_) => None,
    }
}

fn is_cursor(parameter: &RefOr<Parameter>) -> bool {
    matches!(parameter, RefOr::T(parameter) if parameter.name == "cursor")
}

fn has_version(response: &Response, components: &Components) -> bool {
    let record = schema(response).and_then(name).and_then(|name| components.schemas.get(name));
    record.is_some_and(is_versioned)
}

fn is_versioned(record: &RefOr<Schema>) -> bool {
    matches!(record, RefOr::T(Schema::Object(record)) if record.properties.contains_key("DataVersion"))
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

pub(super) fn header(description: &str) -> Header {
    HeaderBuilder::new().schema(Some(text())).description(Some(description)).build()
}

fn add_header(response: &mut Response, name: &str, description: &str) {
    response.headers.insert(name.to_owned(), header(description).into());
}

fn header_parameter(name: &str, description: &str) -> RefOr<Parameter> {
    let parameter = ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(text()));
    parameter.build().into()
}
