//! Rules for reported results.

use std::{collections::HashSet, sync::Arc};

use assay_digest::hex;
use assay_ledger::{
    failure,
    instance::steps::{self, StoredStep, Writer},
    progress::{
        instance::{Attempt, Detail, Links, Outcome, Slot},
        merge::{ANNOUNCED, MOST_ATTEMPTS},
    },
};
use assay_proto::{
    Classification, Fault, LONGEST_DURATION, TestCaseId, TestResult, Timestamp,
    execution::{InstanceResultInput, StepResultInput},
};
use assay_records::Check;
use aws_lc_rs::digest;
use chrono::{Datelike, TimeDelta};

use crate::result::{classification, link};

/// Maximum number of violations in an answer.
pub(crate) const MOST_VIOLATIONS: usize = 20;

/// Maximum length of the name of a reporter or a variant, in characters.
const LONGEST_NAME: usize = 500;

/// Number of bytes of a hash that a shortened variant ends with.
const HASH: usize = 8;

/// The test case that a result is for.
#[derive(Debug, PartialEq)]
pub(crate) enum Case {
    Id(TestCaseId),
    Identifier(String),
}

/// A valid result. Its report is not known yet.
#[derive(Debug, Default)]
pub(crate) struct Reported {
    pub(crate) case: Option<Case>,
    /// The identifier that the test case may have by an earlier version of the rule for identity.
    pub(crate) former: Option<String>,
    /// The name of the test case, if an open execution does not know it yet.
    pub(crate) name: Option<String>,
    pub(crate) slot: Slot,
    /// Suites, labels and links of the test, if its results name any.
    pub(crate) classification: Option<Arc<Classification>>,
    pub(crate) attempt: Attempt,
}

impl Reported {
    /// Returns about how much memory it takes, in bytes.
    pub(crate) fn size(&self) -> usize {
        let identifier = match &self.case {
            Some(Case::Identifier(identifier)) => identifier.len(),
            Some(Case::Id(_)) | None => 0,
        };
        let name = [&self.name, &self.former].into_iter().flatten().map(String::len).sum::<usize>();
        let headline = self.attempt.cause.as_ref().map_or(0, |cause| cause.headline.len());
        size_of::<Self>() + identifier + name + headline + self.attempt.detail.steps.len()
    }
}

/// Checks a result. `of_case` states whether it has to name its test case.
pub(crate) fn check_result(
    input: InstanceResultInput,
    of_case: bool,
    writer: &mut Writer,
    check: &mut Check,
) -> Result<Reported, Fault> {
    let (outcome, number) = (outcome(&input, check), input.attempt.unwrap_or(1));
    if !(1..=MOST_ATTEMPTS).contains(&number) {
        check.refuse("Attempt", format!("must be 1 to {MOST_ATTEMPTS}"));
    }
    let number = if outcome.result == TestResult::NotExecuted { ANNOUNCED } else { number };
    let slot = slot(input.instance_nr, input.reporter, input.variant, check);
    if let Some(name) = &input.name {
        check.text("Name", name);
    }
    let name = input.name;
    let (suites, labels) = (input.suites, input.labels);
    let classification =
        classification::checked(Classification { suites, labels, links: input.links }, check);
    let case = of_case.then(|| case(input.test_case_id, input.identifier, check)).flatten();
    let mut numbers = HashSet::with_capacity(input.steps.len());
    for (index, step) in input.steps.iter().enumerate() {
        check.within(format_args!("Steps/{index}"), |check| {
            if !numbers.insert(step.step_nr) {
                check.refuse("StepNr", "must not be that of another step");
            }
            check_step(step, check);
        });
    }
    let mut link = |field, link: Option<String>| {
        let link = link.unwrap_or_default();
        check_link(field, &link, check);
        link
    };
    let links = Links {
        artifacts: link("ArtifactsUri", input.artifacts_uri),
        report: link("ReportUri", input.report_uri),
        debug_log: link("DebugLogUri", input.debug_log_uri),
        execution_log: link("ExecutionLogUri", input.execution_log_uri),
        installation_log: link("InstallationLogUri", input.installation_log_uri),
    };
    let links = (links != Links::default()).then(|| links.into());
    let mut detail = Detail { steps: Vec::new(), links };
    let mut failed_by = None;
    // An invalid request is not stored, so its steps need no stored form.
    if check.is_ok() {
        let stored: Vec<StoredStep> = input.steps.into_iter().map(StoredStep::from).collect();
        failed_by = failure::cause(outcome.result, &stored);
        match writer.write(&stored)? {
            Some(steps) => detail.steps = steps,
            None => check.refuse("Steps", format!("must have at most {} bytes", steps::LARGEST)),
        }
    }
    Ok(Reported {
        case,
        former: None,
        name,
        slot,
        classification,
        attempt: Attempt { number, outcome, detail, cause: failed_by.map(Box::new) },
    })
}

/// Returns the instance that a result is for: the one with the number, or else the one of the
/// reporter with the parameters.
fn slot(
    number: Option<i32>,
    reporter: Option<String>,
    variant: Option<String>,
    check: &mut Check,
) -> Slot {
    let reporter = reporter.unwrap_or_default();
    check_name("Reporter", &reporter, check);
    // An export of results that were uploaded may have any variant.
    let named = Slot::Named { reporter, variant: shortened(variant.unwrap_or_default()) };
    match number {
        Some(number) if number < 1 => {
            check.refuse("InstanceNr", "must be 1 or more");
            named
        }
        Some(number) if named == Slot::UNNAMED => Slot::Number(number),
        Some(_) => {
            check.refuse("InstanceNr", "must be absent if Reporter or Variant is present");
            named
        }
        None => named,
    }
}

/// Returns a variant as it is stored: a line of bounded length. Any other one becomes the beginning of its
/// line, `~` and a hash of the whole, so that different ones stay different.
pub(crate) fn shortened(variant: String) -> String {
    let is_long = variant.chars().nth(LONGEST_NAME).is_some();
    if !is_long && !variant.contains(char::is_control) {
        return variant;
    }
    let hash = digest::digest(&digest::SHA256, variant.as_bytes());
    let mark = format!("~{}", hex(&hash.as_ref()[..HASH]));
    let line = variant.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    line.take(LONGEST_NAME - mark.len()).collect::<String>() + &mark
}

/// Checks the name of a reporter or of a variant.
pub(crate) fn check_name(field: &str, name: &str, check: &mut Check) {
    check.line(field, name, 0..=LONGEST_NAME);
}

fn case(id: Option<String>, identifier: Option<String>, check: &mut Check) -> Option<Case> {
    let Some(id) = id else {
        match &identifier {
            Some(identifier) => check.text("Identifier", identifier),
            None => check.refuse("TestCaseId", "must be given, or Identifier"),
        }
        return identifier.map(Case::Identifier);
    };
    let id = TestCaseId::from_path(&id).ok();
    if id.is_none() {
        check.refuse("TestCaseId", "must be the id of a test case");
    }
    id.map(Case::Id)
}

fn outcome(input: &InstanceResultInput, check: &mut Check) -> Outcome {
    if input.result() == TestResult::Unspecified {
        check.refuse("Result", "must be given");
    }
    let (start, finish) = (input.start_date_time, input.finish_date_time);
    let between = start.zip(finish).map(|(start, finish)| (finish.0 - start.0).as_seconds_f64());
    match between {
        Some(..0.0) => check.refuse("FinishDateTime", "must not be before StartDateTime"),
        Some(seconds) if seconds > LONGEST_DURATION => {
            let problem = format!("must be at most {LONGEST_DURATION} seconds after StartDateTime");
            check.refuse("FinishDateTime", problem);
        }
        _ => {}
    }
    let duration = input.duration_in_sec;
    check_duration(duration.unwrap_or_default(), check);
    Outcome {
        result: input.result(),
        start_date_time: start.or_else(|| shifted(finish?, -duration?)),
        finish_date_time: finish.or_else(|| shifted(start?, duration?)),
        duration_in_sec: duration.or(between).unwrap_or_default(),
    }
}

/// Returns the time that many seconds later. `None` if that is beyond the calendar.
pub(crate) fn shifted(time: Timestamp, seconds: f64) -> Option<Timestamp> {
    let microseconds = (seconds.abs() <= LONGEST_DURATION).then_some(seconds * 1e6)?;
    #[expect(clippy::cast_possible_truncation, reason = "it was just checked to fit")]
    let time = time.0.checked_add_signed(TimeDelta::microseconds(microseconds.round() as i64))?;
    (0..=9999).contains(&time.year()).then_some(Timestamp(time))
}

fn check_step(step: &StepResultInput, check: &mut Check) {
    if step.step_nr < 1 {
        check.refuse("StepNr", "must be 1 or more");
    }
    if step.result() == TestResult::Unspecified {
        check.refuse("Result", "must be given");
    }
    check_duration(step.duration_in_sec, check);
    for (field, text) in [
        ("TestInput", &step.test_input),
        ("ExpectedResult", &step.expected_result),
        ("ActualResult", &step.actual_result),
    ] {
        check.text(field, text.as_deref().unwrap_or_default());
    }
    check_link("Thumbnail", step.thumbnail.as_deref().unwrap_or_default(), check);
    for (index, link) in step.screenshots.iter().enumerate() {
        check.within("Screenshots", |check| check_link(&index.to_string(), link, check));
    }
    for (index, text) in step.soft_verification.iter().enumerate() {
        check.within("SoftVerification", |check| check.text(&index.to_string(), text));
    }
}

fn check_duration(seconds: f64, check: &mut Check) {
    if !(0.0..=LONGEST_DURATION).contains(&seconds) {
        check.refuse("DurationInSec", format!("must be 0 to {LONGEST_DURATION}"));
    }
}

fn check_link(field: &str, link: &str, check: &mut Check) {
    if let Some(problem) = link::problem(link) {
        check.refuse(field, problem);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_variants_are_shortened_to_a_line_and_stay_different() {
        for kept in [String::new(), "Project=firefox".to_owned(), "ä".repeat(LONGEST_NAME)] {
            assert_eq!(shortened(kept.clone()), kept);
        }
        let long = |end: &str| shortened(format!("{}{end}", "ä".repeat(LONGEST_NAME)));
        assert_eq!(long("a").chars().count(), LONGEST_NAME);
        assert_ne!(long("a"), long("b"));
        assert_eq!(shortened(long("a")), long("a"), "an export can be reported again");
        let lines = shortened("sql=select\n1".to_owned());
        assert!(lines.starts_with("sql=select 1~"), "{lines}");
        assert_ne!(lines, shortened("sql=select\t1".to_owned()));
    }
}
