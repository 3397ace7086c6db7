//! Answers with a large array, which are parsed while they are received.

use std::io::{BufReader, Read};

use anyhow::{Result, ensure};
use assay_client::{Answer, ClientError};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, DeserializeSeed, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

/// Maximum size of an answer, in bytes, and number of elements of its array.
const LARGEST: u64 = 512 << 20;
const MOST: u64 = 1_000_000;

/// Reads an answer whose array `field` may be large: calls `each` with its elements. Returns the other
/// fields and the state.
pub(crate) async fn read_streamed<T, S>(
    answer: Answer,
    field: &'static str,
    mut state: S,
    each: fn(&mut S, T) -> Result<()>,
) -> Result<(Map<String, Value>, S)>
where
    T: DeserializeOwned + Send + 'static,
    S: Send + 'static,
{
    let body = answer.reader(LARGEST);
    let parse = move || {
        let mut count = 0;
        let mut each = |element| {
            count += 1;
            ensure!(count <= MOST, "{field} has more than {MOST} elements");
            each(&mut state, element)
        };
        let fields = parse(BufReader::new(body), field, &mut each)?;
        Ok((fields, state))
    };
    tokio::task::spawn_blocking(parse).await?
}

/// Parses an object, and calls `each` with the elements of the array `field`.
fn parse<T: DeserializeOwned>(
    body: impl Read,
    field: &str,
    each: &mut dyn FnMut(T) -> Result<()>,
) -> Result<Map<String, Value>> {
    let mut failure = None;
    let object = Object { field, each, failure: &mut failure };
    let read = object.deserialize(&mut serde_json::Deserializer::from_reader(body));
    match failure {
        Some(failure) => Err(failure),
        None => Ok(read.map_err(ClientError::from_json)?),
    }
}

/// An object with a large array.
struct Object<'o, T> {
    field: &'o str,
    each: &'o mut dyn FnMut(T) -> Result<()>,
    failure: &'o mut Option<anyhow::Error>,
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for Object<'_, T> {
    type Value = Map<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, body: D) -> Result<Self::Value, D::Error> {
        body.deserialize_map(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<'_, T> {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = object.next_key::<String>()? {
            if name == self.field {
                let elements = Elements { each: &mut *self.each, failure: &mut *self.failure };
                object.next_value_seed(elements)?;
            } else {
                fields.insert(name, object.next_value()?);
            }
        }
        Ok(fields)
    }
}

/// The elements of the array.
struct Elements<'o, T> {
    each: &'o mut dyn FnMut(T) -> Result<()>,
    failure: &'o mut Option<anyhow::Error>,
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for Elements<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, body: D) -> Result<(), D::Error> {
        body.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Elements<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        while let Some(element) = elements.next_element()? {
            if let Err(failure) = (self.each)(element) {
                *self.failure = Some(failure);
                return Err(serde::de::Error::custom("the element was refused"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_elements_of_a_large_array_are_passed_on_one_by_one() {
        let body = br#"{"Id": "1", "TestReports": [1, 2, 3], "Result": null}"#;
        let mut sum = 0;
        let mut add = |number: i32| {
            sum += number;
            Ok(())
        };
        let fields = parse(&body[..], "TestReports", &mut add).unwrap();
        assert_eq!(Value::Object(fields), json!({"Id": "1", "Result": null}));
        assert_eq!(sum, 6);

        let mut refuse = |_: i32| Err(anyhow!("no space"));
        let refused = parse(&body[..], "TestReports", &mut refuse).unwrap_err();
        assert_eq!(refused.to_string(), "no space");
        let mut take = |_: i32| Ok(());
        assert!(parse(&body[..20], "TestReports", &mut take).is_err(), "broken off");
    }
}
