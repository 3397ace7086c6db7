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

/// Reads a JSON array of results, or one result after the other (`lines`).
pub(crate) fn read(body: Body, lines: bool) -> Result<Vec<Reported>, Fault> {
    let mut results =
        Results { read: Vec::new(), violations: Vec::new(), steps: steps::Writer::new()? };
    elements::read(BufReader::new(body), lines, |result| results.add(result))?;
    results.finish()
}

/// The results that were read so far, or what was wrong with them.
struct Results {
    read: Vec<Reported>,
    violations: Vec<Violation>,
    steps: steps::Writer,
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
                self.read.push(rules::check(input, index, &mut self.steps, violations)?);
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
