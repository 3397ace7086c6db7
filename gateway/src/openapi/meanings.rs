//! What fields mean, where their contract leaves it to the record that their message is a form of,
//! or to their name.

use std::collections::{BTreeMap, BTreeSet};

use utoipa::openapi::{OpenApi, RefOr, Schema};

use super::forms::{Said, record_of};

/// Describes all fields that nothing is said of, but for those that are records and choices: these
/// are described themselves.
pub(super) fn tell(document: &mut OpenApi) {
    let schemas = &mut document.components.get_or_insert_default().schemas;
    let meanings = Meanings::of(schemas);
    for (message, schema) in schemas {
        for (field, schema) in fields(schema) {
            let Some(said) = description(schema) else { continue };
            *said = said.take().or_else(|| meanings.meaning(message, field));
        }
    }
}

/// What is said of fields.
#[derive(Default)]
struct Meanings {
    /// All messages, in lower case.
    messages: BTreeSet<String>,
    given: Said,
}

impl Meanings {
    fn of(schemas: &mut BTreeMap<String, RefOr<Schema>>) -> Self {
        let mut meanings = Self::default();
        for (message, schema) in schemas {
            meanings.messages.insert(message.to_lowercase());
            for (field, schema) in fields(schema) {
                let Some(Some(said)) = description(schema) else { continue };
                meanings.given.add(message, field, said);
            }
        }
        meanings
    }

    /// What is said of a field, or goes without saying.
    fn meaning(&self, message: &str, field: &str) -> Option<String> {
        let known = self.given.of(message, field).map(str::to_owned);
        known.or_else(|| self.matter_of_course(record_of(message), field))
    }

    fn matter_of_course(&self, record: &str, field: &str) -> Option<String> {
        Some(match field {
            "Id" => format!("The id of the {}.", words(record)),
            "Name" => format!("The name of the {}.", words(record)),
            "Archived" => format!("Whether the {} is in the archive.", words(record)),
            "Deleted" => format!("Whether the {} was deleted.", words(record)),
            _ => {
                let noun = field.strip_suffix("Id")?;
                let is_known = self.messages.contains(&noun.to_lowercase());
                is_known.then(|| format!("The id of the {}.", words(noun)))?
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

/// Where a value is described, if it is no record and no choice.
fn description(schema: &mut Schema) -> Option<&mut Option<String>> {
    match schema {
        Schema::Object(object) => Some(&mut object.description),
        Schema::Array(array) => Some(&mut array.description),
        _ => None,
    }
}

/// `TestCase` is a test case.
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
