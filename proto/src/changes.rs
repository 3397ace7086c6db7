//! Partial updates: absent is unchanged, null is cleared.

/// An `…Input` message that can take over single fields from another one.
///
/// A service reads what a record says now into its input message, under a lock on the row, applies
/// the changes, and checks and writes the whole: so a change is subject to the same rules as a
/// creation, and two changes of different fields never undo each other.
pub trait Changes: Sized {
    /// The JSON names of the fields, with their second names.
    const FIELDS: &'static [&'static str];

    /// Takes over the field of that JSON name; one that does not exist changes nothing.
    fn take(&mut self, field: &str, from: &mut Self);

    /// This input with the given fields of `changes`.
    #[must_use]
    fn with(mut self, mut changes: Self, fields: &[String]) -> Self {
        for field in fields {
            self.take(field, &mut changes);
        }
        self
    }
}
