//! Amendments: what a file says about tests after it has named them, such as failures of the suites that contain them.

use assay_fingerprint::Failure as Cause;
use assay_formats::{Amendment, MOST_OUTPUTS, Nature, OUTPUT, Problem};
use assay_ledger::{
    failure,
    instance::steps::{self, StoredStep},
    progress::instance::Attempt,
};
use assay_proto::{Fault, TestResult, worst};
use assay_rpc::body::Memory;

use super::{MOST_TESTS, Results, written};

/// Maximum number of times that tests fail with what contains them. Each test is read and written for
/// it, and suites can be nested.
const MOST_AMENDED: usize = 4 * MOST_TESTS;

impl Results<'_> {
    /// Changes the tests of the open file from this one on, and acquires memory for each.
    pub(super) fn change(
        &mut self,
        first: usize,
        amendment: &Amendment,
        memory: &mut Memory,
    ) -> Result<(), Fault> {
        let mut outputs = 0;
        let shared = match amendment {
            Amendment::Failure(problem) => Cause::of(&text_of(problem)),
            Amendment::Skip(_) | Amendment::Output(_) => None,
        };
        for index in self.last_results(self.begin + first) {
            let result = &mut self.read[index];
            let before = result.size();
            let Attempt { outcome, detail, cause, .. } = &mut result.attempt;
            let is_concerned = match amendment {
                Amendment::Failure(_) => outcome.result != TestResult::Canceled,
                Amendment::Skip(_) => true,
                Amendment::Output(_) => Nature::of(outcome.result).is_some(),
            };
            if !is_concerned {
                continue;
            }
            self.amended += 1;
            if self.amended > MOST_AMENDED {
                return Err(too_many_amendments());
            }
            let mut steps: Vec<StoredStep> = steps::read(&detail.steps)?;
            match amendment {
                Amendment::Failure(problem) => {
                    outcome.result = worst(outcome.result, problem.nature.result());
                    let is_first = !steps.iter().any(|step| step.result().is_failure());
                    let nature = problem.nature.result();
                    steps.push(step_of(nature, text_of(problem), steps.last()));
                    if is_first && outcome.result.is_failure() {
                        *cause = shared.clone().map(Box::new);
                    } else if cause.is_none() {
                        *cause = failure::cause(outcome.result, &steps).map(Box::new);
                    }
                }
                Amendment::Skip(reason) if is_explained(steps.last(), reason) => continue,
                Amendment::Skip(reason) => {
                    outcome.result = TestResult::Canceled;
                    steps.push(step_of(outcome.result, reason.clone(), steps.last()));
                    *cause = None;
                }
                Amendment::Output(_) if outputs == MOST_OUTPUTS => break,
                Amendment::Output(output) if add_output(steps.last_mut(), output) => {
                    outputs += 1;
                    *cause = failure::cause(outcome.result, &steps).map(Box::new);
                }
                Amendment::Output(_) => continue,
            }
            detail.steps = written(&steps, &mut self.writer)?;
            memory.grow(result.size().saturating_sub(before))?;
        }
        Ok(())
    }

    /// Returns the indexes of the last results of the tests from this one on, each once.
    fn last_results(&self, first: usize) -> Vec<usize> {
        let mut last: Vec<usize> = self.pieces[first..].iter().map(|piece| piece.last).collect();
        last.sort_unstable();
        last.dedup();
        last
    }
}

/// Returns whether the last step of a skipped test states this reason already.
fn is_explained(last: Option<&StoredStep>, reason: &str) -> bool {
    let is_skipped = |last: &StoredStep| last.result() == TestResult::Canceled;
    last.is_some_and(|last| is_skipped(last) && last.actual_result.starts_with(reason))
}

/// Returns a step with this result and text behind the last one.
fn step_of(result: TestResult, text: String, last: Option<&StoredStep>) -> StoredStep {
    StoredStep {
        step_nr: last.map_or(1, |last| last.step_nr + 1),
        result: result.into(),
        test_input: last.map(|last| last.test_input.clone()).unwrap_or_default(),
        actual_result: text,
        ..StoredStep::default()
    }
}

fn text_of(problem: &Problem) -> String {
    let text = [problem.message.as_str(), &problem.text].map(str::trim);
    text.join("\n\n").trim().to_owned()
}

fn too_many_amendments() -> Fault {
    let reason = format!(
        "the failures of suites concern more than {MOST_AMENDED} tests: send the suites separately"
    );
    Fault::Refused { code: "too_many_tests", reason }
}

/// Adds an output to a step without one. Returns whether it did.
fn add_output(step: Option<&mut StoredStep>, output: &str) -> bool {
    let Some(step) = step.filter(|step| !step.actual_result.contains(OUTPUT)) else { return false };
    let text = [step.actual_result.trim(), &format!("{OUTPUT}{}", output.trim())].join("\n\n");
    text.trim().clone_into(&mut step.actual_result);
    true
}
