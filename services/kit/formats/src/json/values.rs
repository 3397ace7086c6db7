//! Values of bounded size. Tools write numbers as texts, and one text or several.

use std::fmt;

use serde::de::{
    Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor, value,
};

use super::allowance;
use crate::{
    Property,
    limits::{MOST_LABELS, OUTPUT},
    names::named,
    texts::{keep_beginning, keep_end},
};

/// The beginning of a text, with this maximum size in bytes. Numbers and truth values become texts,
/// several texts become lines of one, and anything else becomes empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text<const MOST: usize>(pub(crate) String);

impl<'de, const MOST: usize> Deserialize<'de> for Text<MOST> {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_any(TextVisitor::<MOST>)
    }
}

struct TextVisitor<const MOST: usize>;

impl<'de, const MOST: usize> Visitor<'de> for TextVisitor<MOST> {
    type Value = Text<MOST>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text<MOST>, E> {
        let mut kept = String::new();
        keep_beginning(&mut kept, text, MOST);
        Ok(Text(kept))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Text<MOST>, E> {
        Ok(Text(value.to_string()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Text<MOST>, E> {
        Ok(Text(value.to_string()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Text<MOST>, E> {
        Ok(Text(value.to_string()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Text<MOST>, E> {
        Ok(Text(value.to_string()))
    }

    fn visit_unit<E: Error>(self) -> Result<Text<MOST>, E> {
        Ok(Text::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut lines: A) -> Result<Text<MOST>, A::Error> {
        let mut kept = String::new();
        while let Some(Text(line)) = lines.next_element::<Text<MOST>>()? {
            if !kept.is_empty() {
                keep_beginning(&mut kept, "\n", MOST);
            }
            keep_beginning(&mut kept, &line, MOST);
        }
        Ok(Text(kept))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Text<MOST>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Text::default())
    }
}

/// A name of bounded size. One that is cut stays different from others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Name(pub(crate) String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        Text::<{ usize::MAX }>::deserialize(value).map(|Text(name)| Self(named(&name)))
    }
}

/// The end of an output. Several texts, also in the member `text` of objects, follow each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tail(pub(crate) String);

impl<'de> Deserialize<'de> for Tail {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_any(TailVisitor)
    }
}

struct TailVisitor;

impl<'de> Visitor<'de> for TailVisitor {
    type Value = Tail;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an output")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Tail, E> {
        let mut kept = String::new();
        keep_end(&mut kept, text, OUTPUT);
        Ok(Tail(kept))
    }

    fn visit_unit<E: Error>(self) -> Result<Tail, E> {
        Ok(Tail::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Tail, A::Error> {
        let mut kept = String::new();
        while let Some(Tail(part)) = parts.next_element()? {
            keep_end(&mut kept, &part, OUTPUT);
        }
        Ok(Tail(kept))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tail, A::Error> {
        let mut tail = Tail::default();
        while let Some(Text(name)) = map.next_key::<Text<16>>()? {
            if name == "text" {
                tail = map.next_value()?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(tail)
    }
}

/// A number, also one that is written as text. Anything else is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Number(pub(crate) Option<f64>);

impl Number {
    /// Returns a number of tests.
    pub(crate) fn count(self) -> Option<usize> {
        let number = self.0.filter(|number| (0.0..1e9).contains(number))?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it fits")]
        Some(number as usize)
    }
}

/// A truth value, also one that is written as text. Anything else is false.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flag(pub(crate) bool);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        let Text(text) = Text::<8>::deserialize(value)?;
        Ok(Self(text.eq_ignore_ascii_case("true")))
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        let Text(text) = Text::<32>::deserialize(value)?;
        Ok(Self(text.trim().parse().ok().filter(|number: &f64| number.is_finite())))
    }
}

/// The first elements of an array, with this maximum number, as long as the [allowance] of the test
/// lasts. Anything else is an empty list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct List<T, const MOST: usize>(pub(crate) Vec<T>);

impl<T, const MOST: usize> Default for List<T, MOST> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for List<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_any(ListVisitor::<T, MOST>(Vec::new()))
    }
}

struct ListVisitor<T, const MOST: usize>(Vec<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for ListVisitor<T, MOST> {
    type Value = List<T, MOST>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<Self::Value, A::Error> {
        while self.0.len() < MOST && allowance::take::<T>() {
            match elements.next_element()? {
                Some(element) => self.0.push(element),
                None => return Ok(List(self.0)),
            }
        }
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(List(self.0))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(List(self.0))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Ok(List(self.0))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(List(self.0))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(List(self.0))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(List(self.0))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(List(self.0))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(List(self.0))
    }
}

/// The first members of an object, as texts. Anything else has no members.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Map(pub(crate) Vec<Property>);

impl<'de> Deserialize<'de> for Map {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_any(MapVisitor)
    }
}

struct MapVisitor;

impl<'de> Visitor<'de> for MapVisitor {
    type Value = Map;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Map, A::Error> {
        let mut members = Vec::new();
        while let Some((Text::<4096>(name), Text::<4096>(value))) = map.next_entry()? {
            if members.len() < MOST_LABELS && allowance::take::<Property>() {
                members.push(Property { name, value });
            }
        }
        Ok(Map(members))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<Map, A::Error> {
        let rest = value::SeqAccessDeserializer::new(elements);
        IgnoredAny::deserialize(rest).map(|_| Map::default())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Map, E> {
        Ok(Map::default())
    }

    fn visit_unit<E: Error>(self) -> Result<Map, E> {
        Ok(Map::default())
    }
}
