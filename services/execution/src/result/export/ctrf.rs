//! Conversion of instances to tests of a CTRF report.

use assay_formats::{Attempt, Nature, Problem, Property, Step, Test};
use assay_ledger::instance::steps::StoredStep;
use assay_proto::TestResult;

use super::{instance::Instance, junit::without_output};

/// Returns an instance as a test with its attempts.
pub(super) fn test(instance: &Instance<'_>) -> Test {
    let (class, name) = instance.names();
    let outcome = &instance.outcome;
    let earlier = instance.earlier.iter();
    let mut attempts: Vec<Attempt> =
        earlier.map(|earlier| attempt(earlier.result, earlier.seconds, &earlier.steps)).collect();
    let last = attempt(outcome.result, outcome.duration_in_sec, instance.steps);
    attempts.push(Attempt { start: outcome.start_date_time, ..last });
    let mut test = Test {
        class: class.unwrap_or_default().to_owned(),
        name: name.to_owned(),
        parameters: parameters(instance.variant),
        start: outcome.start_date_time,
        seconds: outcome.duration_in_sec,
        attempts,
        ..Test::default()
    };
    test.classify(instance.suites, instance.labels, instance.links);
    test
}

fn attempt(result: TestResult, seconds: f64, steps: &[StoredStep]) -> Attempt {
    let last = steps.last().map_or("", |step| step.actual_result.as_str());
    let (reason, output) = without_output(last);
    let nature = match result {
        TestResult::Failed => Some(Nature::Failure),
        TestResult::Error => Some(Nature::Error),
        TestResult::Aborted => Some(Nature::Abortion),
        _ => None,
    };
    let failing = steps.iter().rfind(|step| step.result() == result);
    let problem = nature.map(|nature| {
        let text = failing.map_or(reason, |step| without_output(&step.actual_result).0);
        let message = text.lines().next().unwrap_or_default().to_owned();
        Problem { nature, message, text: text.to_owned() }
    });
    Attempt {
        seconds,
        result,
        reason: if problem.is_none() { reason.to_owned() } else { String::new() },
        problems: problem.into_iter().collect(),
        // The only step of an attempt is the attempt itself.
        steps: if steps.len() > 1 { steps.iter().map(step).collect() } else { Vec::new() },
        output: output.unwrap_or_default().to_owned(),
        ..Attempt::default()
    }
}

fn step(step: &StoredStep) -> Step {
    Step {
        name: step.test_input.clone(),
        result: step.result(),
        seconds: step.duration_in_sec,
        message: without_output(&step.actual_result).0.to_owned(),
        ..Step::default()
    }
}

/// Parses the parameters of an instance, which are `name=value` separated by commas.
fn parameters(variant: &str) -> Vec<Property> {
    let parameter = |text: &str| {
        let (name, value) = text.split_once('=').unwrap_or(("variant", text));
        Property { name: name.trim().to_owned(), value: value.trim().to_owned() }
    };
    variant.split(", ").filter(|text| !text.is_empty()).map(parameter).collect()
}
