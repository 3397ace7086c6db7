//! Writes the implementations of `Columned`: how the records of lists are rendered from rows.

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

use crate::shape::{TIMESTAMP, is_blank, is_id, json_name, rust_path};

/// Returns the implementation for a message with this cursor. Returns `None` if it has fields that are
/// in no column.
pub fn columned(message: &MessageDescriptor, cursor: &FieldDescriptor) -> Option<String> {
    let fields: String = message
        .fields()
        .enumerate()
        .map(|(position, field)| {
            let of = if is_id(&field) { "sqlx::types::Uuid" } else { "&str" };
            let is_cursor = field == *cursor;
            let noted = is_cursor.then(|| format!("row.cursor::<{of}>({:?})?;\n", field.name()));
            Some(noted.unwrap_or_default() + &written(&field, position)?)
        })
        .collect::<Option<_>>()?;
    let message = rust_path(message.full_name());
    Some(format!(
        "#[cfg(feature = \"sql\")]
        impl crate::Columned for {message} {{
            fn write(row: &mut crate::JsonRow<'_>) -> sqlx::Result<()> {{
                {fields}
                Ok(())
            }}
        }}"
    ))
}

/// Returns the statement that writes a field, the one at this position.
fn written(field: &FieldDescriptor, position: usize) -> Option<String> {
    let separator = if position == 0 { '{' } else { ',' };
    let member = format!("{separator}\"{}\":", json_name(field));
    let method = match (field.kind(), field.is_list()) {
        _ if field.is_map() => return None,
        (Kind::String, false) if is_blank(field) => "blank".to_owned(),
        (Kind::String, false) if is_id(field) => "value::<sqlx::types::Uuid>".to_owned(),
        (Kind::Message(message), false) if message.full_name() == TIMESTAMP => {
            "value::<crate::Timestamp>".to_owned()
        }
        (Kind::Message(message), false) => {
            format!("json::<Option<{}>>", rust_path(message.full_name()))
        }
        (Kind::Message(message), true) => {
            format!("json::<Vec<{}>>", rust_path(message.full_name()))
        }
        (Kind::String | Kind::Enum(_), false) => "value::<&str>".to_owned(),
        (kind, is_list) => {
            let value = match kind {
                Kind::String | Kind::Enum(_) => "String",
                Kind::Bool => "bool",
                Kind::Int32 => "i32",
                Kind::Int64 => "i64",
                Kind::Double => "f64",
                _ => return None,
            };
            if is_list { format!("value::<Vec<{value}>>") } else { format!("value::<{value}>") }
        }
    };
    Some(format!("row.{method}({member:?}, {:?})?;\n", field.name()))
}
