//! Attributes of launches, which become tags and the origin of executions.

use serde::Deserialize;
use serde_json::Value;

/// Maximum length of a tag and of all tags, in characters.
const LONGEST_TAG: usize = 255;
pub(super) const LONGEST_TAGS: usize = 1000;

/// Tags of launches that are run again or whose mode is `DEBUG`.
pub(super) const OWN_TAGS: [&str; 2] = ["rerun", "debug"];

/// An attribute. Agents also send numbers.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Attribute {
    key: Value,
    value: Value,
    system: Value,
}

impl Attribute {
    /// Whether a user has chosen it, and not the agent.
    pub(super) fn is_of_user(&self) -> bool {
        self.system != true
    }
}

/// Returns the value of an attribute, unless it is empty.
pub(super) fn of_key(attributes: &[Attribute], key: &str) -> Option<String> {
    let found = attributes.iter().find(|one| one.key == key);
    found.map(|one| text(&one.value)).filter(|value| !value.is_empty())
}

/// Returns the tags of an execution, separated by commas.
pub(super) fn tags(own: Vec<&str>, attributes: &[Attribute]) -> String {
    let of_user = attributes.iter().filter(|attribute| attribute.is_of_user());
    let tag = |attribute: &Attribute| {
        let (key, value) = (text(&attribute.key), text(&attribute.value));
        let tag = if key.is_empty() { value } else { format!("{key}:{value}") };
        line(&tag.replace(',', " "), LONGEST_TAG)
    };
    let own = own.into_iter().map(str::to_owned);
    let mut length = 0;
    let fits = |tag: &String| {
        length += tag.chars().count() + 2;
        length <= LONGEST_TAGS
    };
    let tags = own.chain(of_user.map(tag)).filter(|tag| !tag.is_empty()).take_while(fits);
    tags.collect::<Vec<_>>().join(", ")
}

/// Returns a value as a text; empty if there is none.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    }
}

/// Returns the beginning of a text as one line.
pub(super) fn line(text: &str, longest: usize) -> String {
    let plain = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(longest).collect::<String>().trim_end().to_owned()
}
