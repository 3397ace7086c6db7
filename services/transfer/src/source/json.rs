//! Reads the elements of JSON files one by one.

use std::{fs::File, io::BufReader, path::Path};

use anyhow::{Context, Result};
use serde::{
    Deserializer,
    de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

/// Calls `each` with the records of a file: the elements of an array, which may be in one of these
/// fields of an object, or a sequence of objects.
pub(super) fn elements(
    path: &Path,
    fields: &[&str],
    each: &mut dyn FnMut(Map<String, Value>) -> Result<()>,
) -> Result<()> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut input = serde_json::Deserializer::from_reader(BufReader::with_capacity(1 << 16, file));
    let mut failure = None;
    while input.end().is_err() {
        let top = Top { fields, each: &mut *each, failure: &mut failure };
        let read = top.deserialize(&mut input);
        if let Some(failure) = failure.take() {
            return Err(failure.context(path.display().to_string()));
        }
        read.with_context(|| format!("{} is not valid JSON", path.display()))?;
    }
    Ok(())
}

struct Top<'t> {
    fields: &'t [&'t str],
    each: &'t mut dyn FnMut(Map<String, Value>) -> Result<()>,
    failure: &'t mut Option<anyhow::Error>,
}

impl Top<'_> {
    fn pass<E: serde::de::Error>(&mut self, record: Map<String, Value>) -> Result<(), E> {
        (self.each)(record).map_err(|failure| {
            *self.failure = Some(failure);
            E::custom("the record was refused")
        })
    }
}

impl<'de> DeserializeSeed<'de> for Top<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Top<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array of objects, or an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut array: A) -> Result<(), A::Error> {
        while let Some(record) = array.next_element()? {
            self.pass(record)?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut object: A) -> Result<(), A::Error> {
        let (mut record, mut is_envelope) = (Map::new(), false);
        while let Some(name) = object.next_key::<String>()? {
            if self.fields.contains(&name.as_str()) {
                is_envelope = true;
                let Self { fields, each, failure } = &mut self;
                object.next_value_seed(Top { fields, each: &mut **each, failure })?;
            } else {
                record.insert(name, object.next_value()?);
            }
        }
        match record.get("error") {
            Some(error) if !is_envelope && !error.is_null() => {
                Err(A::Error::custom(format!("the file has an error instead of records: {error}")))
            }
            _ if is_envelope => Ok(()),
            _ => self.pass(record),
        }
    }
}

/// Returns the text of a field; that of a number, too.
pub(super) fn text(record: &Map<String, Value>, field: &str) -> String {
    match record.get(field) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn numbers(body: &str) -> Result<Vec<i64>> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("dump.json");
        fs::write(&file, body).unwrap();
        let mut numbers = Vec::new();
        elements(&file, &["result", "content"], &mut |record| {
            numbers.push(record["id"].as_i64().context("a number")?);
            Ok(())
        })?;
        Ok(numbers)
    }

    #[test]
    fn records_are_found_in_arrays_envelopes_and_lines() {
        for body in [
            r#"[{"id": 1}, {"id": 2}]"#,
            r#"{"jsonrpc": "2.0", "result": [{"id": 1}, {"id": 2}], "id": 7}"#,
            r#"{"content": [{"id": 1}], "page": {}} {"content": [{"id": 2}]}"#,
            "{\"id\": 1}\n{\"id\": 2}\n",
        ] {
            assert_eq!(numbers(body).unwrap(), [1, 2], "{body}");
        }
        assert!(numbers("[]").unwrap().is_empty());
    }

    #[test]
    fn a_broken_file_is_refused_with_its_line() {
        let error = format!("{:#}", numbers("[{\"id\": 1},\n{\"id\": }]").unwrap_err());
        assert!(
            error.contains("dump.json is not valid JSON") && error.contains("line 2"),
            "{error}"
        );
        let error = format!("{:#}", numbers("[{\"id\": 1}").unwrap_err());
        assert!(error.contains("EOF"), "{error}");
        let error = format!("{:#}", numbers(r#"{"error": {"message": "denied"}}"#).unwrap_err());
        assert!(error.contains("denied"), "{error}");
    }
}
