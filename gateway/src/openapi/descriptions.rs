//! Descriptions of fields whose contract has none: taken from the record that the message is a form
//! of, or derived from the name of the field.

use std::collections::{BTreeMap, BTreeSet};

use utoipa::openapi::{OpenApi, RefOr, Schema};

use super::texts::{Texts, record_of};

/// Describes all fields without a description, except references to records and enums, which have
/// their own.
pub(super) fn add(document: &mut OpenApi) {
    let schemas = &mut document.components.get_or_insert_default().schemas;
    let descriptions = Descriptions::of(schemas);
    for (message, schema) in schemas {
        for (field, schema) in fields(schema) {
            let Some(description) = description(schema) else { continue };
            *description = description.take().or_else(|| descriptions.find(message, field));
        }
    }
}

/// The descriptions in the contracts.
#[derive(Default)]
struct Descriptions {
    /// The names of all messages, in lower case.
    messages: BTreeSet<String>,
    given: Texts,
}

impl Descriptions {
    fn of(schemas: &mut BTreeMap<String, RefOr<Schema>>) -> Self {
        let mut descriptions = Self::default();
        for (message, schema) in schemas {
            descriptions.messages.insert(message.to_lowercase());
            for (field, schema) in fields(schema) {
                let Some(Some(text)) = description(schema) else { continue };
                descriptions.given.add(message, field, text);
            }
        }
        descriptions
    }

    fn find(&self, message: &str, field: &str) -> Option<String> {
        let known = self.given.of(message, field).map(str::to_owned);
        known.or_else(|| self.derive(record_of(message), field))
    }

    /// Derives the description of a field from its name.
    fn derive(&self, record: &str, field: &str) -> Option<String> {
        Some(match field {
            "Id" => format!("Id of the {}.", words(record)),
            "Name" => format!("Name of the {}.", words(record)),
            "Archived" => format!("Whether the {} is archived.", words(record)),
            "Deleted" => format!("Whether the {} has been deleted.", words(record)),
            _ => {
                let noun = field.strip_suffix("Id")?;
                let is_known = self.messages.contains(&noun.to_lowercase());
                is_known.then(|| format!("Id of the {}.", words(noun)))?
            }
        })
    }
}

fn fields(schema: &mut RefOr<Schema>) -> impl Iterator<Item = (&String, &mut Schema)> {
    let fields = match schema {
        RefOr::T(Schema::Object(object)) => Some(&mut object.properties),
        _ => None,
    };
    fields.into_iter().flatten().filter_map(|(name, schema)| match schema {
        RefOr::T(schema) => Some((name, schema)),
        RefOr::Ref(_) => None,
    })
}

/// Returns the description of a plain value or an array.
fn description(schema: &mut Schema) -> Option<&mut Option<String>> {
    match schema {
        Schema::Object(object) => Some(&mut object.description),
        Schema::Array(array) => Some(&mut array.description),
        _ => None,
    }
}

/// Converts the name of a type to words: `TestCase` to `test case`.
fn words(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}
