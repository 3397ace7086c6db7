//! The JSON report of Playwright: files, suites, specs, and a test for each project of a spec.

mod outcome;

use std::io::BufRead;

use assay_proto::Fault;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess};

use self::outcome::Spec;
use crate::{
    Format, Head, Sink,
    json::{self, Array, Elements, Members, Object, Output, Text},
    limits::MESSAGE,
};

/// The format of Playwright's JSON reports.
pub struct Playwright;

impl Format for Playwright {
    fn name(&self) -> &'static str {
        "Playwright JSON"
    }

    fn recognizes(&self, head: &Head) -> bool {
        head.object().is_some_and(|json| {
            let configures = ["configFile", "rootDir", "forbidOnly", "fullyParallel"];
            (json.has(1, "config") && configures.iter().any(|name| json.has(2, name)))
                || (json.has(1, "suites") && json.has(3, "specs"))
        })
    }

    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault> {
        json::read(self.name(), file, sink, |json, output| {
            Object(&mut Report { titles: Vec::new(), output }).deserialize(json)
        })
    }
}

/// State of the reader: the document, or a suite in it.
struct Report<'o, 's> {
    /// Titles of the open suites, outermost first. The first one is a file.
    titles: Vec<String>,
    output: &'o mut Output<'s>,
}

impl Members for Report<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "suites" => map.next_value_seed(Array(&mut Suites(self))),
            "specs" => map.next_value_seed(Array(&mut Specs(self))),
            "title" => {
                let Text(title) = map.next_value::<Text<MESSAGE>>()?;
                let Some(last) = self.titles.last_mut() else { return Ok(()) };
                *last = title;
                Ok(())
            }
            _ => map.next_value::<IgnoredAny>().map(drop),
        }
    }
}

struct Suites<'r, 'o, 's>(&'r mut Report<'o, 's>);

impl Elements for Suites<'_, '_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, sequence: &mut A) -> Result<bool, A::Error> {
        self.0.titles.push(String::new());
        let suite = sequence.next_element_seed(Object(self.0));
        self.0.titles.pop();
        suite.map(|suite| suite.is_some())
    }
}

struct Specs<'r, 'o, 's>(&'r mut Report<'o, 's>);

impl Elements for Specs<'_, '_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, sequence: &mut A) -> Result<bool, A::Error> {
        let Some(spec) = sequence.next_element::<Spec>()? else { return Ok(false) };
        if self.0.titles.last().is_none_or(String::is_empty) {
            // The titles identify the tests.
            return Err(A::Error::custom("the title of a suite must be in front of its specs"));
        }
        for test in spec.into_tests(&self.0.titles) {
            self.0.output.add(test)?;
        }
        Ok(true)
    }
}
