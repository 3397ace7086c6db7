//! Partial updates: an absent field keeps its value, null clears it.

/// An `…Input` message that single fields can be moved into.
///
/// A service locks the row, reads the record into its input message, applies the changes, and
/// validates and writes the whole. So the rules of a creation apply to an update too, and updates
/// of different fields never undo each other.
pub trait Changes: Sized {
    /// JSON names of the fields, including aliases.
    const FIELDS: &'static [&'static str];

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
