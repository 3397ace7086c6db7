//! Values of requests that are fewer than the type of their field has: accepted values, permissions, and
//! null in new records.

use assay_proto::{ACCEPTED, Permission, name_of};
use utoipa::openapi::{
    Components, ObjectBuilder, OneOfBuilder, Ref, RefOr, Schema,
    schema::{OneOf, SchemaType, Type},
};

/// Describes the accepted values of fields of inputs.
pub(super) fn describe(components: &mut Components) {
    for (message, field, name, values) in ACCEPTED {
        let choice = ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some(format!("Values of `{field}` that clients may send.")))
            .enum_values(Some(values.iter().copied()));
        components.schemas.insert((*name).to_owned(), choice.into());
        if let Some(field) = field_of(components, message, field) {
            let may_be_null = may_be_null(field);
            let mut choice = Ref::from_schema_name(*name);
            choice.description = description(field).unwrap_or_default();
            *field = choice.into();
            if may_be_null {
                allow_null_in(field);
            }
        }
    }
    let names: Vec<String> =
        (1..).map_while(|number| Permission::try_from(number).ok()).map(name_of).collect();
    let names = names.join("|");
    for message in ["UserGroupInput", "ApiTokenInput"] {
        if let Some(RefOr::T(Schema::Object(field))) =
            field_of(components, message, "UsagePermission")
        {
            field.pattern = Some(format!("^({names})( *, *({names}))*$"));
        }
    }
}

/// Describes that fields of a new record may be null, which counts as absent.
pub(super) fn allow_null(components: &mut Components, input: &str) {
    let Some(RefOr::T(Schema::Object(record))) = components.schemas.get_mut(input) else { return };
    for (name, field) in &mut record.properties {
        if !record.required.contains(name) {
            allow_null_in(field);
        }
    }
}

fn allow_null_in(field: &mut RefOr<Schema>) {
    match field {
        RefOr::Ref(record) => {
            let choice = OneOfBuilder::new().item(record.clone()).item(null());
            *field = choice.into();
        }
        RefOr::T(Schema::Object(value)) => or_null(&mut value.schema_type),
        RefOr::T(Schema::Array(values)) => or_null(&mut values.schema_type),
        RefOr::T(Schema::OneOf(choice)) if !has_null(choice) => choice.items.push(null().into()),
        RefOr::T(_) => {}
    }
}

fn or_null(kind: &mut SchemaType) {
    if let SchemaType::Type(only) = kind {
        *kind = SchemaType::from_iter([only.clone(), Type::Null]);
    }
}

fn null() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Null)
}

fn has_null(choice: &OneOf) -> bool {
    choice.items.iter().any(|item| match item {
        RefOr::T(Schema::Object(value)) => value.schema_type == SchemaType::Type(Type::Null),
        _ => false,
    })
}

fn may_be_null(field: &RefOr<Schema>) -> bool {
    match field {
        RefOr::T(Schema::Object(value)) => matches!(value.schema_type, SchemaType::Array(_)),
        RefOr::T(Schema::OneOf(choice)) => has_null(choice),
        _ => false,
    }
}

fn description(field: &RefOr<Schema>) -> Option<String> {
    match field {
        RefOr::T(Schema::Object(value)) => value.description.clone(),
        RefOr::Ref(record) => Some(record.description.clone()),
        RefOr::T(_) => None,
    }
}

fn field_of<'c>(
    components: &'c mut Components,
    message: &str,
    field: &str,
) -> Option<&'c mut RefOr<Schema>> {
    match components.schemas.get_mut(message)? {
        RefOr::T(Schema::Object(record)) => record.properties.get_mut(field),
        _ => None,
    }
}
