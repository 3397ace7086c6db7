//! Generates the implementation of `UploadMessage` for each message with a piece of a body: one with the
//! fields `chunk` and `last`, and `file` if the body can be a form. Its first field is the target of the
//! body, unless that is the chunk.

use std::fmt::Write;

use prost_reflect::{DescriptorPool, FieldDescriptor, Kind};

use crate::shape::rust_path;

/// Returns the implementations as Rust code.
pub fn impls(pool: &DescriptorPool) -> Result<String, std::fmt::Error> {
    let mut code = String::new();
    for message in pool.all_messages() {
        let has = |name| message.get_field_by_name(name).is_some();
        let Some(first) = message.fields().next() else { continue };
        if !message.name().ends_with("Request") || !has("chunk") || !has("last") {
            continue;
        }
        let (target, taken) = if first.name() == "chunk" {
            ("()".to_owned(), "None".to_owned())
        } else {
            (type_of(&first), format!("self.{}", first.name()))
        };
        let (name, file) =
            (rust_path(message.full_name()), if has("file") { "self.file" } else { "None" });
        writeln!(
            code,
            "impl crate::UploadMessage for {name} {{
                type Target = {target};
                fn into_parts(self) -> (Option<{target}>, crate::Piece) {{
                    ({taken}, crate::Piece {{ chunk: self.chunk, file: {file}, last: self.last }})
                }}
            }}"
        )?;
    }
    Ok(code)
}

/// Returns the type of an optional field in Rust.
fn type_of(field: &FieldDescriptor) -> String {
    match field.kind() {
        Kind::Message(message) => rust_path(message.full_name()),
        _ => "String".to_owned(),
    }
}
