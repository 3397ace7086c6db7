//! Writes the columns of messages: for each message that is read from rows, what a `select` lists,
//! also as a JSON object; for each `…Input` message, the columns that it is written to, and how its
//! fields are bound.

use std::fmt::Write;

use prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};

use crate::shape::{Role, TIMESTAMP, extension, is_id, json_name, rust_path};

pub fn impls(pool: &DescriptorPool) -> Result<String, std::fmt::Error> {
    let mut code = String::new();
    let ours = |name: &str| name.starts_with("assay.") && !name.starts_with("assay.shapes.");
    for message in pool.all_messages().filter(|message| ours(message.full_name())) {
        match Role::of(&message) {
            Role::Record => record(&mut code, &message)?,
            Role::Input => input(&mut code, &message)?,
            Role::Envelope | Role::List => {}
        }
    }
    Ok(code)
}

fn record(code: &mut String, message: &MessageDescriptor) -> std::fmt::Result {
    let (mut columns, mut members) = (Vec::new(), Vec::new());
    for field in message.fields() {
        let Some(expression) = selected(&field) else { continue };
        members.push(format!("'{}', {expression}", json_name(&field)));
        columns.push(match field.name() {
            name if name == expression => expression,
            name => format!("{expression} as {name}"),
        });
    }
    let object = format!("jsonb_build_object({})", members.join(", "));
    writeln!(
        code,
        "#[cfg(feature = \"sql\")]
        impl {} {{
            /// The columns that the message is read from, as a `select` lists them.
            pub const COLUMNS: &'static str = {:?};
            /// The same columns as one object, for a message that is a part of another.
            pub const JSON: &'static str = {object:?};
        }}\n",
        rust_path(message.full_name()),
        columns.join(", ")
    )
}

fn input(code: &mut String, message: &MessageDescriptor) -> std::fmt::Result {
    let fields = || message.fields().filter(|field| column(field).as_deref() != Some(""));
    let names: Vec<String> =
        fields().map(|field| column(&field).unwrap_or_else(|| field.name().to_owned())).collect();
    let parameters: Vec<(&str, &str)> = names
        .iter()
        .zip(fields())
        .map(|(name, field)| (name.as_str(), if is_text_id(&field) { "::uuid" } else { "" }))
        .collect();
    let binds: String = fields().map(|field| format!(".bind({})", bound(&field))).collect();
    writeln!(
        code,
        "#[cfg(feature = \"sql\")]
        impl crate::InputColumns for {} {{
            const COLUMNS: &'static str = {:?};
            const PARAMETERS: &'static [(&'static str, &'static str)] = &{parameters:?};
            fn bind<'q, O>(&'q self, query: crate::InputQuery<'q, O>) -> crate::InputQuery<'q, O> {{
                query{binds}
            }}
        }}\n",
        rust_path(message.full_name()),
        names.join(", ")
    )?;
    arrays(code, message, &fields().collect::<Vec<_>>())
}

/// Writes how many inputs are bound as arrays, if each field has one value.
fn arrays(
    code: &mut String,
    message: &MessageDescriptor,
    fields: &[FieldDescriptor],
) -> std::fmt::Result {
    let Some(types) = fields.iter().map(element_type).collect::<Option<Vec<_>>>() else {
        return Ok(());
    };
    let bind = |field| {
        let value = bound(field).replace("self.", "input.");
        format!(".bind(inputs.iter().map(|input| {value}).collect::<Vec<_>>())")
    };
    let binds: String = fields.iter().map(bind).collect();
    writeln!(
        code,
        "#[cfg(feature = \"sql\")]
        impl crate::InputArrays for {} {{
            const TYPES: &'static [&'static str] = &{types:?};
            fn bind_all<'q, O>(
                inputs: &[&'q Self],
                query: crate::InputQuery<'q, O>,
            ) -> crate::InputQuery<'q, O> {{
                query{binds}
            }}
        }}\n",
        rust_path(message.full_name())
    )
}

/// Returns the type of a column with one value.
fn element_type(field: &FieldDescriptor) -> Option<&'static str> {
    if field.is_list() {
        return None;
    }
    match field.kind() {
        _ if is_text_id(field) => Some("uuid"),
        Kind::String | Kind::Enum(_) => Some("text"),
        Kind::Bool => Some("boolean"),
        Kind::Int32 => Some("integer"),
        Kind::Int64 => Some("bigint"),
        _ => None,
    }
}

/// The expression that a field is read from, if it has one.
fn selected(field: &FieldDescriptor) -> Option<String> {
    match column(field) {
        Some(expression) => Some(expression).filter(|expression| !expression.is_empty()),
        None if field.name() == "data_version" => Some("revision::text".to_owned()),
        None => Some(field.name().to_owned()),
    }
}

/// The expression that binds a field.
fn bound(field: &FieldDescriptor) -> String {
    let (name, repeated) = (field.name(), field.is_list());
    let optional = field.field_descriptor_proto().proto3_optional();
    match field.kind() {
        Kind::Message(message) if message.full_name() == TIMESTAMP && !repeated => {
            format!("self.{name}")
        }
        Kind::Message(_) if repeated => format!("sqlx::types::Json(&self.{name})"),
        Kind::Message(_) => format!("self.{name}.as_ref().map(sqlx::types::Json)"),
        Kind::Enum(choice) => {
            let value = format!("crate::columns::name::<{}>", rust_path(choice.full_name()));
            match (repeated, optional) {
                (true, _) => format!(
                    "self.{name}.iter().filter_map(|value| {value}(*value)).collect::<Vec<_>>()"
                ),
                (_, true) => format!("self.{name}.and_then({value})"),
                _ => format!("{value}(self.{name})"),
            }
        }
        _ if is_text_id(field) && optional => {
            // Empty text counts as absent.
            format!("self.{name}.as_deref().filter(|id| !id.is_empty())")
        }
        Kind::String => format!("&self.{name}"),
        _ if repeated => format!("&self.{name}"),
        _ => format!("self.{name}"),
    }
}

/// Whether a field holds the text of a UUID.
fn is_text_id(field: &FieldDescriptor) -> bool {
    matches!(field.kind(), Kind::String) && !field.is_list() && is_id(field)
}

/// Returns the value of the option `column` of a field, if it is set.
fn column(field: &FieldDescriptor) -> Option<String> {
    Some(extension(field, "assay.column")?.as_str()?.to_owned())
}
