//! Cucumber JSON: features with elements, which are scenarios and backgrounds. Behave writes times,
//! tags and places in ways of its own.

use std::io::BufRead;

use assay_proto::{Fault, TestResult};
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess};

use super::{element::Element, status::result, step::ReportedStep};
use crate::{
    Format, Head, Nature, Problem, Retry, Sink, Test,
    held::Held,
    json::{self, Array, Elements, List, Members, Name, Object, Output, Text},
    limits::MESSAGE,
};

/// The format of Cucumber JSON.
pub struct CucumberJson;

impl Format for CucumberJson {
    fn name(&self) -> &'static str {
        "Cucumber JSON"
    }

    fn recognizes(&self, head: &Head) -> bool {
        head.array().is_some_and(|json| {
            json.has(2, "elements")
                || (json.has(2, "keyword") && (json.has(2, "uri") || json.has(2, "location")))
        })
    }

    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault> {
        json::read(self.name(), file, sink, |json, output| {
            Array(&mut Features(output)).deserialize(json)
        })
    }
}

struct Features<'o, 's>(&'o mut Output<'s>);

impl Elements for Features<'_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, sequence: &mut A) -> Result<bool, A::Error> {
        let mut feature = Feature {
            name: String::new(),
            file: String::new(),
            background: None,
            scenario: None,
            status: None,
            has_failures: false,
            location: String::new(),
            held: Held::default(),
            output: self.0,
        };
        let found = sequence.next_element_seed(Object(&mut feature))?.is_some();
        if found {
            feature.end_scenario()?;
            feature.end_background()?;
            feature.release()?;
        }
        Ok(found)
    }
}

/// A feature. Its name often comes behind its scenarios, which wait for it.
struct Feature<'o, 's> {
    name: String,
    /// Name of the file without its end, in reports of Behave.
    file: String,
    /// The background that precedes the next scenario.
    background: Option<Element>,
    /// The last scenario, whose background may follow: cucumber-rs writes it behind the scenario if that has hooks.
    scenario: Option<Element>,
    /// Result that Behave reports of the feature.
    status: Option<TestResult>,
    has_failures: bool,
    /// Place of the last scenario.
    location: String,
    held: Held<()>,
    output: &'o mut Output<'s>,
}

impl Members for Feature<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "name" => {
                self.name = map.next_value::<Name>()?.0;
            }
            "location" => {
                let Text(location) = map.next_value::<Text<MESSAGE>>()?;
                let file = location.rsplit('/').next().unwrap_or_default();
                let file = file.split(".feature").next().unwrap_or_default();
                file.clone_into(&mut self.file);
            }
            "elements" => map.next_value_seed(Array(self))?,
            "status" => {
                let Text(status) = map.next_value::<Text<32>>()?;
                self.status = (!status.is_empty()).then(|| result(&status));
            }
            _ => _ = map.next_value::<IgnoredAny>()?,
        }
        Ok(())
    }
}

impl Elements for Feature<'_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, sequence: &mut A) -> Result<bool, A::Error> {
        let Some(mut element) = sequence.next_element::<Element>()? else { return Ok(false) };
        if element.r#type.0 == "background" {
            // Cucumber for Ruby writes the hooks of the scenario here.
            let mut steps = element.take_steps();
            steps.retain(ReportedStep::has_result);
            match &mut self.scenario {
                Some(scenario) if scenario.has_place_of(&element) => scenario.background = steps,
                _ => {
                    self.end_scenario()?;
                    self.end_background()?;
                    element.steps = List(steps);
                    self.background = Some(element);
                }
            }
        } else {
            self.end_scenario()?;
            let background = self.background.take().map(|background| background.steps.0);
            element.background = background.unwrap_or_default();
            self.scenario = Some(element);
        }
        Ok(true)
    }
}

impl Feature<'_, '_> {
    /// Lets a test wait for the name of the feature.
    fn hold<E: Error>(&mut self, test: Test) -> Result<(), E> {
        self.has_failures |= Nature::of(test.result()).is_some();
        let held = self.held.push((), test, CucumberJson.name());
        held.map_err(|fault| self.output.stop(fault))
    }

    /// Makes a test of the last scenario.
    fn end_scenario<E: Error>(&mut self) -> Result<(), E> {
        let Some(scenario) = self.scenario.take() else { return Ok(()) };
        // Behave and Cucumber for Ruby write each attempt of a scenario.
        let place = scenario.place();
        let is_again = !place.is_empty() && place == self.location;
        self.location = place;
        let mut test = scenario.into_test();
        test.retry = if is_again { Retry::AfterFailure } else { Retry::Never };
        self.hold(test)
    }

    /// Makes a test of a background without a scenario: cucumber-rs leaves out the scenario if the background fails.
    fn end_background<E: Error>(&mut self) -> Result<(), E> {
        match self.background.take().filter(|background| !background.steps.0.is_empty()) {
            Some(background) => self.hold(background.into_test()),
            None => Ok(()),
        }
    }

    fn release<E: serde::de::Error>(&mut self) -> Result<(), E> {
        let Self { name, file, held, output, .. } = self;
        let class = match (file.as_str(), name.as_str()) {
            ("", class) | (class, "") => class.to_owned(),
            // As in the JUnit report of Behave.
            (file, name) => format!("{file}.{name}"),
        };
        let hook = self.status.filter(|status| Nature::of(*status).is_some() && !self.has_failures);
        output.with(|sink| {
            held.release(|(), test| test.class.clone_from(&class), sink)?;
            // A hook of the feature failed, of which Behave reports nothing else.
            let Some(nature) = hook.and_then(Nature::of) else { return Ok(()) };
            let message = "The feature failed outside of its scenarios.".to_owned();
            let problem = Problem { nature, message, ..Problem::default() };
            sink.add_own(Test { name: class.clone(), ..Test::default() }, problem)
        })
    }
}
