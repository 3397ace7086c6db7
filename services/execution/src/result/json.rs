//! Reads results in JSON, one at a time: what is kept of each is what will be stored.

use std::io::BufReader;

use assay_proto::{Fault, Violation};
use assay_records::elements;
use assay_runtime::body::Body;
use serde_json::value::RawValue;

use crate::{
    instance::steps,
    result::rules::{self, MOST_VIOLATIONS, Reported},
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
    let lines = source == (Source::Execution { lines: true });
    elements::read(BufReader::new(body), lines, |result| results.add(result))?;
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
        match elements::parse(json, index) {
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
