//! Fields that clients send in an object within the body.

/// The fields that a client has sent in an object within the body, for the pointers of problems.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nested {
    /// The name of the object.
    pub(crate) object: &'static str,
    /// The names of its fields, in lower case.
    pub(crate) fields: Vec<String>,
}

impl Nested {
    /// Returns the path of a field, or of a part of one, in the body.
    pub(crate) fn locate(&self, field: String) -> String {
        let name = field.split('/').next().unwrap_or_default().to_lowercase();
        if self.fields.contains(&name) { format!("{}/{field}", self.object) } else { field }
    }
}
