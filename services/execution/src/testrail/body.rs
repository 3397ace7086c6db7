//! The results in the body of a request, as clients of TestRail send them.

use std::collections::{HashMap, HashSet};

use assay_formats::{Attempt, Nature, Problem, Step, Test, parse_lenient_from, parse_seconds};
use assay_proto::{Fault, TestResult};
use assay_rpc::body::{File, Memory};
use assay_weight::Weight;
use aws_lc_rs::digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::number;

/// Maximum number of results in a request.
const MOST_RESULTS: usize = 10_000;

/// The status of a test without a result.
const UNTESTED: i64 = 3;

/// A result whose test case is known by its number.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) test_case: i64,
    pub(super) status: i64,
    attempt: Attempt,
}

/// The results of a request.
#[derive(Debug)]
pub(super) struct Results {
    pub(super) sent: Vec<Sent>,
    /// The SHA-256 digest of the request.
    pub(super) digest: Vec<u8>,
}

#[derive(Deserialize)]
struct Body {
    results: Vec<ResultBody>,
}

/// A result. Clients send numbers also as text.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ResultBody {
    case_id: Value,
    test_id: Value,
    status_id: Value,
    comment: Value,
    elapsed: Value,
    defects: Value,
    custom_step_results: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StepBody {
    content: Value,
    expected: Value,
    actual: Value,
    status_id: Value,
}

/// Reads results, or the only one of a test case, and acquires memory for them before.
pub(super) fn read(
    file: File,
    test_case: Option<i64>,
    memory: &mut Memory,
) -> Result<Results, Fault> {
    let mut weight = Weight::default();
    file.parts().for_each(|part| weight.add(part));
    if weight.is_excessive() {
        let reason = "the body has too many objects and values: send fewer results in one request";
        return Err(Fault::Refused { code: "too_large", reason: reason.to_owned() });
    }
    memory.grow(weight.bytes())?;
    let mut digest = digest::Context::new(&digest::SHA256);
    digest.update(&test_case.unwrap_or_default().to_le_bytes());
    file.parts().for_each(|part| digest.update(part));
    let results = match test_case {
        Some(_) => vec![parse(file)?],
        None => parse::<Body>(file)?.results,
    };
    if !(1..=MOST_RESULTS).contains(&results.len()) {
        return Err(Fault::invalid("results", format!("must be 1 to {MOST_RESULTS} results")));
    }
    let sent = results.into_iter().enumerate();
    let sent = sent.map(|(index, result)| result.sent(index, test_case));
    Ok(Results { sent: sent.collect::<Result<_, _>>()?, digest: digest.finish().as_ref().to_vec() })
}

fn parse<T: serde::de::DeserializeOwned>(file: File) -> Result<T, Fault> {
    let malformed = |error| Fault::Malformed(format!("the body is not valid JSON: {error}"));
    parse_lenient_from(file).map_err(malformed)
}

impl ResultBody {
    fn sent(self, index: usize, test_case: Option<i64>) -> Result<Sent, Fault> {
        let of_test = || whole(&self.test_id).map(number::test_case_of);
        let test_case = test_case.or_else(|| whole(&self.case_id)).or_else(of_test);
        let test_case =
            test_case.ok_or_else(|| invalid(index, "case_id", "must be a whole number"))?;
        let status = whole(&self.status_id).filter(|status| *status > 0 && *status != UNTESTED);
        let rule = "must be the id of a status other than 3 (Untested)";
        let status = status.ok_or_else(|| invalid(index, "status_id", rule))?;
        Ok(Sent { test_case, status, attempt: self.attempt(result_of(status)) })
    }

    fn attempt(self, result: TestResult) -> Attempt {
        let steps: Vec<Step> = match self.custom_step_results {
            Value::Array(steps) => steps.into_iter().filter_map(step).collect(),
            _ => Vec::new(),
        };
        let comment = text(&self.comment);
        let nature = match result {
            TestResult::Failed => Some(Nature::Failure),
            TestResult::Aborted => Some(Nature::Abortion),
            _ => None,
        };
        let explains = |_: &Nature| steps.is_empty() || !comment.trim().is_empty();
        let problem = nature.filter(explains).map(|nature| {
            let (message, text) = described(&comment);
            Problem { nature, message, text }
        });
        let defects = text(&self.defects);
        Attempt {
            seconds: seconds(&self.elapsed),
            result,
            reason: if problem.is_some() { String::new() } else { comment },
            problems: problem.into_iter().collect(),
            output: if defects.is_empty() { defects } else { format!("Defects: {defects}") },
            steps,
            ..Attempt::default()
        }
    }
}

fn invalid(index: usize, field: &str, rule: &str) -> Fault {
    Fault::invalid(format!("results/{index}/{field}"), rule)
}

fn step(body: Value) -> Option<Step> {
    let StepBody { content, expected, actual, status_id } = serde_json::from_value(body).ok()?;
    let (expected, actual) = (text(&expected), text(&actual));
    let message = match (expected.is_empty(), actual.is_empty()) {
        (false, true) => format!("Expected: {expected}"),
        (false, false) => format!("Expected: {expected}\nActual: {actual}"),
        (true, _) => actual,
    };
    let result = whole(&status_id).map_or(TestResult::Canceled, result_of);
    Some(Step { name: text(&content), result, message, ..Step::default() })
}

/// Returns the result of a status. Statuses that administrators of TestRail have added are not known
/// to be failures.
fn result_of(status: i64) -> TestResult {
    match status {
        1 => TestResult::Passed,
        2 => TestResult::Aborted,
        5 => TestResult::Failed,
        _ => TestResult::Canceled,
    }
}

/// Splits the comment that trcli makes of a failure into message and text.
fn described(comment: &str) -> (String, String) {
    let message = comment.split_once("Message: ").filter(|(before, _)| {
        before.is_empty() || before.starts_with("Type: ") && before.trim_end().lines().count() == 1
    });
    match message.map(|(_, rest)| rest.split_once("\nText: ").unwrap_or((rest, ""))) {
        Some((message, text)) => (message.to_owned(), text.to_owned()),
        None => (String::new(), comment.to_owned()),
    }
}

/// Returns a duration in seconds.
fn seconds(elapsed: &Value) -> f64 {
    parse_seconds(&text(elapsed)).unwrap_or_default()
}

fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.trim().parse().ok())
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns a test for each test case, with its results as attempts in their order.
pub(super) fn tests(sent: Vec<Sent>, identifiers: &HashMap<i64, String>) -> Vec<Test> {
    let (mut tests, mut places) = (Vec::<Test>::new(), HashMap::new());
    for Sent { test_case, attempt, .. } in sent {
        let Some(identifier) = identifiers.get(&test_case) else { continue };
        let place = *places.entry(test_case).or_insert_with(|| {
            let (id, name) = (identifier.clone(), identifier.clone());
            tests.push(Test { id, name, ..Test::default() });
            tests.len() - 1
        });
        tests[place].attempts.push(attempt);
    }
    tests
}

/// The details of a run, as far as they matter to its results. They are what a client has sent, of any type.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Selection {
    include_all: Value,
    case_ids: Value,
}

impl Selection {
    pub(super) fn of(details: &str) -> Result<Self, Fault> {
        serde_json::from_str(details).map_err(Fault::internal)
    }

    /// Returns a filter of the test cases that are not part of the run. A run is limited by `false` and a list only.
    pub(super) fn excludes(self) -> impl Fn(i64) -> bool {
        let cases: Option<HashSet<i64>> = match self.case_ids {
            Value::Array(cases) if self.include_all == Value::Bool(false) => {
                Some(cases.iter().filter_map(Value::as_i64).collect())
            }
            _ => None,
        };
        move |case| cases.as_ref().is_some_and(|cases| !cases.contains(&case))
    }
}

/// The attempt that a result is, as the details of its number.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct AttemptOf {
    pub(super) report: uuid::Uuid,
    pub(super) instance: i32,
    pub(super) attempt: i32,
}

#[cfg(test)]
mod tests;
