//! Reads results in JSON, one at a time: what is kept of each is what will be stored.

use std::io::BufReader;

use assay_proto::{Fault, Violation, execution::InstanceResultInput};
use serde::de::{Deserializer as _, Error, SeqAccess, Visitor};
use serde_json::{Deserializer, value::RawValue};
use serde_path_to_error::{Path, Segment};

use crate::{
    instance::steps,
    result::{
        body::Body,
        rules::{self, MOST_VIOLATIONS, Reported},
    },
};

/// How many results one request may bring.
const MOST_RESULTS: usize = 10_000;

/// Who sends results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Source {
    /// Who runs an External execution, and says of each result which case it is of: as a JSON array,
    /// or one result after the other (`lines`).
    Execution { lines: bool },
    /// An engine, which has leased the one report that they are for.
    Engine,
}

/// Reads results.
pub(crate) fn read(body: Body, source: Source) -> Result<Vec<Reported>, Fault> {
    let mut results = Results {
        read: Vec::new(),
        violations: Vec::new(),
        steps: steps::Writer::new()?,
        of_cases: source != Source::Engine,
    };
    let mut json = Deserializer::from_reader(BufReader::new(body));
    if source == (Source::Execution { lines: true }) {
        for result in json.into_iter() {
            let result: Box<RawValue> = result.map_err(|error| malformed(&error))?;
            results.add(&result)?;
        }
    } else {
        let mut stopped = None;
        let array = Array { results: &mut results, stopped: &mut stopped };
        let read = json.deserialize_seq(array).and_then(|()| json.end());
        if let Some(fault) = stopped {
            return Err(fault);
        }
        read.map_err(|error| malformed(&error))?;
    }
    results.finish()
}

/// The results that were read so far, or what was wrong with them.
struct Results {
    read: Vec<Reported>,
    violations: Vec<Violation>,
    steps: steps::Writer,
    /// Whether each has to name its case.
    of_cases: bool,
}

impl Results {
    fn add(&mut self, json: &RawValue) -> Result<(), Fault> {
        let index = self.read.len();
        if index == MOST_RESULTS {
            let problem = format!("must have at most {MOST_RESULTS} results");
            return Err(Fault::invalid("", problem));
        }
        match parse(json, index) {
            Ok(input) => {
                let violations = &mut self.violations;
                let steps = &mut self.steps;
                let result = rules::check(input, index, self.of_cases, steps, violations)?;
                self.read.push(result);
            }
            Err(violation) => {
                self.violations.push(violation);
                self.read.push(Reported::default());
            }
        }
        if self.violations.len() < MOST_VIOLATIONS { Ok(()) } else { Err(self.refuse()) }
    }

    fn refuse(&mut self) -> Fault {
        Fault::Invalid(std::mem::take(&mut self.violations))
    }

    fn finish(mut self) -> Result<Vec<Reported>, Fault> {
        if self.violations.is_empty() { Ok(self.read) } else { Err(self.refuse()) }
    }
}

/// Reads one result. That it is JSON is known, so what fails is a field.
fn parse(json: &RawValue, index: usize) -> Result<InstanceResultInput, Violation> {
    let mut json = Deserializer::from_str(json.get());
    serde_path_to_error::deserialize(&mut json).map_err(|error| Violation {
        field: format!("{index}{}", pointer(error.path())),
        problem: without_place(&error.inner().to_string()).to_owned(),
    })
}

/// A path within a result as a JSON pointer.
fn pointer(path: &Path) -> String {
    path.iter()
        .map(|segment| match segment {
            Segment::Seq { index } => format!("/{index}"),
            Segment::Map { key } => format!("/{}", key.replace('~', "~0").replace('/', "~1")),
            Segment::Enum { .. } | Segment::Unknown => String::new(),
        })
        .collect()
}

/// The message of a parser without the place within the result, which says nothing to its sender.
fn without_place(message: &str) -> &str {
    message.rsplit_once(" at line ").map_or(message, |(message, _)| message)
}

fn malformed(error: &serde_json::Error) -> Fault {
    if error.is_data() {
        return Fault::invalid("", without_place(&error.to_string()));
    }
    let (line, column) = (error.line(), error.column());
    Fault::Malformed(format!("the body is not JSON at line {line}, column {column}"))
}

/// Takes each element of an array as soon as it is read, until one is refused.
struct Array<'a> {
    results: &'a mut Results,
    stopped: &'a mut Option<Fault>,
}

impl<'de> Visitor<'de> for Array<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array of results")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        while let Some(element) = elements.next_element::<Box<RawValue>>()? {
            if let Err(fault) = self.results.add(&element) {
                *self.stopped = Some(fault);
                return Err(A::Error::custom("refused"));
            }
        }
        Ok(())
    }
}
