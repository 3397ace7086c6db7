//! Generates the table of examples of fields, for the documentation.

use std::fmt::Write;

use prost_reflect::DescriptorPool;

use crate::shape::{extension, json_name};

/// Returns the table as Rust code: message, field and example of each field that has one.
pub fn table(pool: &DescriptorPool) -> Result<String, std::fmt::Error> {
    let mut table = String::from("pub static EXAMPLES: &[(&str, &str, &str)] = &[\n");
    for message in pool.all_messages() {
        for field in message.fields() {
            let Some(example) = extension(&field, "assay.example") else { continue };
            let (message, field) = (message.name(), json_name(&field));
            writeln!(table, "    ({message:?}, {field:?}, {:?}),", example.as_str().unwrap_or(""))?;
        }
    }
    table.push_str("];\n");
    Ok(table)
}
