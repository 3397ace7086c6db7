//! The history of Allure 3: a line for each run, with the results of its tests.

use std::{fs::File, io::BufReader, path::Path};

use anyhow::{Context, Result};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor},
};

use super::{identifier, verdict};
use crate::source::{
    model::{Outcome, Run},
    store::Store,
    text::milliseconds,
};

/// A result of a test in a run.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Test {
    #[serde(default)]
    name: String,
    #[serde(default)]
    full_name: Option<String>,
    #[serde(default)]
    environment: Option<String>,
    status: String,
    #[serde(default)]
    error: Option<Failure>,
    start: Option<i64>,
    stop: Option<i64>,
    duration: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Failure {
    message: Option<String>,
    trace: Option<String>,
}

/// Reads the lines of a file. The results of a line are passed on one by one.
pub(super) fn read(path: &Path, store: &mut Store) -> Result<()> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut input = serde_json::Deserializer::from_reader(BufReader::with_capacity(1 << 16, file));
    while input.end().is_err() {
        let mut failure = None;
        let line = Line { store, failure: &mut failure };
        let read = line.deserialize(&mut input);
        if let Some(failure) = failure {
            return Err(failure.context(path.display().to_string()));
        }
        read.with_context(|| format!("{} is not valid JSON of a history", path.display()))?;
    }
    Ok(())
}

/// A run. Its fields come before its results.
struct Line<'l> {
    store: &'l mut Store,
    failure: &'l mut Option<anyhow::Error>,
}

impl<'de> DeserializeSeed<'de> for Line<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Line<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a run of tests")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut line: A) -> Result<(), A::Error> {
        let Self { store, failure } = self;
        let mut run = Run::default();
        while let Some(field) = line.next_key::<String>()? {
            match field.as_str() {
                "uuid" => run.key = line.next_value()?,
                "name" => run.set = line.next_value()?,
                "timestamp" => run.start = line.next_value().map(milliseconds)?,
                "testResults" => {
                    if run.key.is_empty() {
                        return Err(A::Error::custom("uuid must come before testResults"));
                    }
                    let tests = Tests { key: &run.key, store: &mut *store, failure: &mut *failure };
                    line.next_value_seed(tests)?;
                }
                "url" => {
                    let url: String = line.next_value()?;
                    run.url = url.starts_with("http").then_some(url);
                }
                _ => _ = line.next_value::<IgnoredAny>()?,
            }
        }
        if run.key.is_empty() {
            return Err(A::Error::missing_field("uuid"));
        }
        // The time of the report is that of its end.
        run.end = run.start.take();
        if run.set.trim().is_empty() {
            super::SET.clone_into(&mut run.set);
        }
        store.run(run).map_err(|error| {
            *failure = Some(error);
            A::Error::custom("the run was refused")
        })
    }
}

/// The results of a run by history id.
struct Tests<'l> {
    key: &'l str,
    store: &'l mut Store,
    failure: &'l mut Option<anyhow::Error>,
}

impl<'de> DeserializeSeed<'de> for Tests<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Tests<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the results of a run")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut tests: A) -> Result<(), A::Error> {
        while let Some((_, test)) = tests.next_entry::<IgnoredAny, Test>()? {
            self.store.result(self.key, outcome(test)).map_err(|error| {
                *self.failure = Some(error);
                A::Error::custom("the result was refused")
            })?;
        }
        Ok(())
    }
}

fn outcome(test: Test) -> Outcome {
    let Failure { message, trace } = test.error.unwrap_or_default();
    let comment = [message, trace].into_iter().flatten().collect::<Vec<_>>().join("\n");
    let environment = test.environment.filter(|name| !name.is_empty() && name != "default");
    Outcome {
        identifier: identifier(test.full_name.as_deref().unwrap_or_default(), &test.name, None),
        name: test.name,
        verdict: verdict(&test.status),
        start: test.start.and_then(milliseconds),
        end: test.stop.and_then(milliseconds),
        seconds: test.duration.map(|milliseconds| milliseconds / 1000.0),
        variant: environment.map(|name| format!("Environment={name}")).unwrap_or_default(),
        comment,
        ..Outcome::default()
    }
}
