//! Generates the tables of examples and of accepted values of fields, for the documentation.

use std::fmt::Write;

use prost_reflect::DescriptorPool;

use crate::shape::{extension, json_name, text};

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

/// Returns the table as Rust code: message, field, name and values of each set of accepted values.
pub fn accepted(pool: &DescriptorPool) -> Result<String, String> {
    let mut table = String::from("pub static ACCEPTED: &[(&str, &str, &str, &[&str])] = &[\n");
    for field in pool.all_messages().flat_map(|message| message.fields().collect::<Vec<_>>()) {
        let Some(values) = text(&field, "assay.accepts") else { continue };
        let Some((name, values)) = values.split_once(": ") else {
            return Err(format!("{}: `accepts` has no name", field.full_name()));
        };
        let values: Vec<&str> = values.split(", ").collect();
        let (message, field) = (field.parent_message().name().to_owned(), json_name(&field));
        writeln!(table, "    ({message:?}, {field:?}, {name:?}, &{values:?}),")
            .map_err(|error| error.to_string())?;
    }
    table.push_str("];\n");
    Ok(table)
}
