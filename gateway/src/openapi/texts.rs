//! Texts about fields, shared by all forms of a record.

use std::collections::{BTreeMap, BTreeSet};

/// Prefixes and suffixes that turn the name of a record into the name of one of its forms.
const PREFIXES: [&str; 6] = ["New", "Debug", "Leased", "Automated", "Imported", "Stored"];
const SUFFIXES: [&str; 5] = ["DataChanges", "Changes", "Input", "Entry", "Summary"];

/// Texts about fields: descriptions or examples.
#[derive(Default)]
pub(super) struct Texts {
    by_message: BTreeMap<(String, String), String>,
    /// The non-empty texts of a field in all messages.
    by_field: BTreeMap<String, BTreeSet<String>>,
}

impl Texts {
    pub(super) fn add(&mut self, message: &str, field: &str, text: &str) {
        self.by_message.insert((message.to_owned(), field.to_owned()), text.to_owned());
        if !text.is_empty() {
            self.by_field.entry(field.to_owned()).or_default().insert(text.to_owned());
        }
    }

    /// Finds the text of a field: its own, that of the record the message is a form of, or the one
    /// that all fields of this name share.
    pub(super) fn of(&self, message: &str, field: &str) -> Option<&str> {
        let of = |message: &str| self.by_message.get(&(message.to_owned(), field.to_owned()));
        let input = message.strip_suffix("Changes").map(|noun| format!("{noun}Input"));
        let by_field = || self.by_field.get(field).filter(|all| all.len() == 1)?.first();
        of(message)
            .or_else(|| of(&input?))
            .or_else(|| of(record_of(message)))
            .or_else(by_field)
            .map(String::as_str)
    }

    /// Finds a text of any field of this name.
    pub(super) fn of_any(&self, field: &str) -> Option<&str> {
        self.by_field.get(field)?.first().map(String::as_str)
    }
}

/// Returns the name of the record that a message is a form of: `Project` for `ProjectInput`.
pub(super) fn record_of(message: &str) -> &str {
    let name = PREFIXES.iter().find_map(|prefix| message.strip_prefix(prefix)).unwrap_or(message);
    SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}
