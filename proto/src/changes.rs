//! Partial updates: an absent field keeps its value, null clears it.

use crate::unknown_field::advice;

/// An `…Input` message that single fields can be moved into.
///
/// A service locks the row, reads the record into its input message, applies the changes, and
/// validates and writes the whole. So the rules of a creation apply to an update too, and updates
/// of different fields never undo each other.
pub trait Changes: Sized {
    /// JSON names of the fields, including aliases.
    const FIELDS: &'static [&'static str];

    /// JSON names of the fields of the record that the message is for. Clients send records back as they
    /// have read them.
    const SHOWN: &'static [&'static str];

    /// Whether fields with other names are ignored instead of refused.
    const IS_OPEN: bool;

    /// Fails if a client may not send a field with this name, with the advice for the client.
    fn check_name(name: &str) -> Result<(), String> {
        let is_known = Self::IS_OPEN || Self::FIELDS.contains(&name) || Self::SHOWN.contains(&name);
        if is_known { Ok(()) } else { Err(advice(name, Self::FIELDS.iter().copied())) }
    }

    /// Moves the field with this JSON name from `from` into this message. Ignores unknown names.
    fn move_field(&mut self, field: &str, from: &mut Self);

    /// Returns this input with the given fields of `changes`.
    #[must_use]
    fn with(mut self, mut changes: Self, fields: &[String]) -> Self {
        for field in fields {
            self.move_field(field, &mut changes);
        }
        self
    }
}
