//! Generates the implementation of `Changes` for each `…Input` message.

use std::fmt::Write;

use prost_reflect::{DescriptorPool, MessageDescriptor};

use crate::shape::{alias, is_open, json_name, rust_path};

/// Returns the implementations as Rust code.
pub fn impls(pool: &DescriptorPool) -> Result<String, std::fmt::Error> {
    let mut code = String::new();
    let ours = |name: &str| name.starts_with("assay.") && !name.starts_with("assay.shapes.");
    for message in pool.all_messages() {
        if !message.name().ends_with("Input") || !ours(message.full_name()) {
            continue;
        }
        let names: Vec<String> = message.fields().map(|field| json_name(&field)).collect();
        writeln!(code, "impl crate::Changes for {} {{", rust_path(message.full_name()))?;
        let known: Vec<String> = names
            .iter()
            .cloned()
            .chain(message.fields().filter_map(|field| alias(&field)))
            .collect();
        writeln!(code, "    const FIELDS: &'static [&'static str] = &{known:?};")?;
        writeln!(code, "    const SHOWN: &'static [&'static str] = &{:?};", shown(&message))?;
        writeln!(code, "    const IS_OPEN: bool = {};", is_open(&message))?;
        writeln!(code, "    #[allow(clippy::single_match)]")?;
        writeln!(code, "    fn move_field(&mut self, field: &str, from: &mut Self) {{")?;
        writeln!(code, "        match field {{")?;
        for (field, name) in message.fields().zip(names) {
            let alias = alias(&field).map_or_else(String::new, |alias| format!(" | {alias:?}"));
            let field = field.name();
            writeln!(
                code,
                "            {name:?}{alias} => self.{field} = std::mem::take(&mut from.{field}),"
            )?;
        }
        writeln!(code, "            _ => {{}}\n        }}\n    }}\n}}\n")?;
    }
    Ok(code)
}

/// Returns the JSON names of the fields of the record that an input is for, in all of its forms.
fn shown(input: &MessageDescriptor) -> Vec<String> {
    let Some(noun) = input.name().strip_suffix("Input") else { return Vec::new() };
    let forms =
        ["", "Entry", "Summary"].map(|form| format!("{}.{noun}{form}", input.package_name()));
    let of_record =
        |message: &MessageDescriptor| forms.iter().any(|form| form == message.full_name());
    let records = input.parent_pool().all_messages().filter(of_record);
    let mut names: Vec<String> = records
        .flat_map(|record| record.fields().collect::<Vec<_>>())
        .map(|f| json_name(&f))
        .collect();
    names.sort();
    names.dedup();
    names
}
