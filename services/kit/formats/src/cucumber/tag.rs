//! The tags of Cucumber JSON.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, Visitor},
};

use crate::{json::Text, limits::MESSAGE, texts::beginning};

/// A tag: an object with a name, or a text, as Behave writes it. An enum without a tag would keep all of
/// the object until its kind is known.
pub(super) struct Tag(pub(super) String);

impl<'de> Deserialize<'de> for Tag {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_any(TagVisitor)
    }
}

struct TagVisitor;

impl<'de> Visitor<'de> for TagVisitor {
    type Value = Tag;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tag")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Tag, E> {
        Ok(Tag(beginning(text, MESSAGE)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tag, A::Error> {
        let mut tag = Tag(String::new());
        while let Some(Text(member)) = map.next_key::<Text<256>>()? {
            if member == "name" {
                tag.0 = map.next_value::<Text<MESSAGE>>()?.0;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(tag)
    }
}
