//! Parses results in JSON one at a time, and keeps only what is stored of each.

use assay_ledger::instance::steps;
use assay_proto::Fault;
use assay_records::{Check, elements};
use assay_rpc::body::{File, Memory};
use serde_json::value::RawValue;

use crate::result::rules::{self, MOST_VIOLATIONS, Reported};

/// Maximum number of results in a request.
const MOST_RESULTS: usize = 10_000;

/// The sender of results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Source {
    /// The client that runs an external execution. Each result names its test case. They are a JSON
    /// array, or one JSON value after the other (`lines`).
    Execution { lines: bool },
    /// An engine. All results are for the report of its lease.
    Engine,
}

/// Parses and checks the results in a body, and acquires memory for each while it is parsed.
pub(crate) fn read(
    body: File,
    source: Source,
    memory: &mut Memory,
) -> Result<Vec<Reported>, Fault> {
    let mut results = Results {
        read: Vec::new(),
        check: Check::with_limit(MOST_VIOLATIONS),
        steps: steps::Writer::new()?,
        of_cases: source != Source::Engine,
        memory,
    };
    let lines = source == (Source::Execution { lines: true });
    elements::read(body, lines, |result, weight| results.add(result, weight))?;
    results.check.done()?;
    Ok(results.read)
}

/// The results so far.
struct Results<'m> {
    read: Vec<Reported>,
    check: Check,
    steps: steps::Writer,
    /// Whether each result has to name its test case.
    of_cases: bool,
    memory: &'m mut Memory,
}

impl Results<'_> {
    fn add(&mut self, json: &RawValue, weight: usize) -> Result<(), Fault> {
        let Self { read, check, steps, of_cases, memory } = self;
        let index = read.len();
        if index == MOST_RESULTS {
            let problem = format!("must have at most {MOST_RESULTS} results");
            return Err(Fault::invalid("", problem));
        }
        memory.lend(weight)?;
        let result = match elements::parse(json, index) {
            Ok(input) => {
                let rules = |check: &mut Check| rules::check_result(input, *of_cases, steps, check);
                check.within(index, rules)?
            }
            Err(violation) => {
                check.refuse(violation.field, violation.problem);
                Reported::default()
            }
        };
        read.push(result);
        // Parsing the rest would find no more violations for the answer.
        if check.is_full() { std::mem::take(check).done() } else { Ok(()) }
    }
}
