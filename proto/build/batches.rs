//! Generates the implementations of `Batch` for each `…Batch` message with rendered records, and of
//! `Listed` and `Columned` for the records. The cursor of a record is its `id`, or its first field if
//! it has none.

use std::{error::Error, fmt::Write};

use prost_reflect::{DescriptorPool, MessageDescriptor};

use crate::{
    rendered::columned,
    shape::{rust_path, text},
};

/// Returns the implementations as Rust code. Fails if the option `assay.rendered` names no message.
pub fn impls(pool: &DescriptorPool) -> Result<String, Box<dyn Error>> {
    let mut code = String::new();
    for message in pool.all_messages().filter(|message| message.name().ends_with("Batch")) {
        let items = message.get_field_by_name("items");
        let Some(item) = items.and_then(|field| text(&field, "assay.rendered")) else { continue };
        let missing = || format!("{}: no such message: {item}", message.full_name());
        let item = visible(pool, message.package_name(), &item).ok_or_else(missing)?;
        let cursor = item.get_field_by_name("id").or_else(|| item.fields().next());
        let cursor = cursor.ok_or_else(|| format!("{} has no fields", item.full_name()))?;
        code.extend(columned(&item, &cursor));
        let (batch, item) = (rust_path(message.full_name()), rust_path(item.full_name()));
        let cursor = cursor.name();
        writeln!(
            code,
            "impl crate::Batch for {batch} {{
                type Item = {item};
                fn rendered(items: prost::bytes::Bytes, next_cursor: Option<String>) -> Self {{
                    Self {{ items, next_cursor }}
                }}
                fn into_parts(self) -> (prost::bytes::Bytes, Option<String>) {{
                    (self.items, self.next_cursor)
                }}
            }}
            impl crate::Listed for {item} {{
                fn cursor(&self) -> &str {{ &self.{cursor} }}
                fn size(&self) -> usize {{ prost::Message::encoded_len(self) }}
            }}"
        )?;
    }
    Ok(code)
}

/// Returns the message with a name in a package or in one that encloses it.
fn visible(pool: &DescriptorPool, package: &str, name: &str) -> Option<MessageDescriptor> {
    let enclosing = package.rsplit_once('.').map(|(enclosing, _)| enclosing);
    let found = pool.get_message_by_name(&format!("{package}.{name}"));
    found.or_else(|| visible(pool, enclosing?, name))
}
