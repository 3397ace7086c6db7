//! Serializes an absent text as an empty string instead of null.

use serde::{Deserialize, Deserializer, Serializer};

#[expect(clippy::ref_option, reason = "serde passes the field itself")]
pub(crate) fn serialize<S: Serializer>(
    text: &Option<String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text.as_deref().unwrap_or_default())
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.filter(|text| !text.is_empty()))
}
