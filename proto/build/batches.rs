//! Generates the implementations of `Batch` and `Listed` for each `…Batch` message and its records.
//! The cursor of a record is its `id`, or its first field if it has none.

use std::fmt::Write;

use prost_reflect::{DescriptorPool, Kind};

use crate::shape::rust_path;

/// Returns the implementations as Rust code.
pub fn impls(pool: &DescriptorPool) -> Result<String, std::fmt::Error> {
    let mut code = String::new();
    for message in pool.all_messages().filter(|message| message.name().ends_with("Batch")) {
        let items = message.get_field_by_name("items").map(|field| field.kind());
        let Some(Kind::Message(item)) = items else { continue };
        let id = item.get_field_by_name("id").or_else(|| item.fields().next());
        let Some(id) = id else { continue };
        let (batch, id) = (rust_path(message.full_name()), id.name().to_owned());
        let item = rust_path(item.full_name());
        writeln!(
            code,
            "impl crate::Batch for {batch} {{
                type Item = {item};
                fn new(items: Vec<{item}>, next_cursor: Option<String>) -> Self {{
                    Self {{ items, next_cursor }}
                }}
                fn into_parts(self) -> (Vec<{item}>, Option<String>) {{
                    (self.items, self.next_cursor)
                }}
            }}
            impl crate::Listed for {item} {{
                fn cursor(&self) -> &str {{ &self.{id} }}
            }}"
        )?;
    }
    Ok(code)
}
