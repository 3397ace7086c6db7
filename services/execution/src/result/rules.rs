//! What a reported result must be like.

use std::collections::HashSet;

use assay_proto::{
    Fault, TestCaseId, TestResult, Timestamp, Violation,
    execution::{InstanceResultInput, StepResultInput},
};
use chrono::{Datelike, TimeDelta};

use crate::{
    instance::steps::{self, StoredStep, Writer},
    progress::instance::{Detail, Outcome},
    result::link,
};

/// The longest time that something may take, in seconds: some thirty years.
const LONGEST: f64 = 1e9;

/// What a text of a step may have at most, in bytes.
const LARGEST_TEXT: usize = 64 << 10;

/// Which test case a result is for.
#[derive(Debug, PartialEq)]
pub(crate) enum Case {
    Id(TestCaseId),
    Identifier(String),
}

/// A result that could be stored, if there is such a report.
#[derive(Debug, Default)]
pub(crate) struct Reported {
    pub(crate) case: Option<Case>,
    pub(crate) outcome: Outcome,
    pub(crate) detail: Detail,
}

/// How many violations are told at once.
pub(crate) const MOST_VIOLATIONS: usize = 20;

/// Gathers what is wrong with the result at one place of a request.
struct Check<'v> {
    index: usize,
    violations: &'v mut Vec<Violation>,
}

impl Check<'_> {
    fn refuse(&mut self, field: &str, problem: impl Into<String>) {
        if self.violations.len() < MOST_VIOLATIONS {
            let field = format!("{}/{field}", self.index);
            self.violations.push(Violation { field, problem: problem.into() });
        }
    }

    fn text(&mut self, field: &str, text: &str, largest: usize) {
        if text.contains('\0') {
            self.refuse(field, "must not contain NUL characters");
        }
        if text.len() > largest {
            self.refuse(field, format!("must have at most {largest} bytes"));
        }
    }

    fn link(&mut self, field: &str, link: &str) {
        if let Some(problem) = link::problem(link) {
            self.refuse(field, problem);
        }
    }

    fn duration(&mut self, field: &str, seconds: f64) {
        if !(0.0..=LONGEST).contains(&seconds) {
            self.refuse(field, format!("must be 0 to {LONGEST}"));
        }
    }
}

/// Checks the result at `index` of a request; adds what is wrong to `violations`.
pub(crate) fn check(
    input: InstanceResultInput,
    index: usize,
    of_case: bool,
    writer: &mut Writer,
    violations: &mut Vec<Violation>,
) -> Result<Reported, Fault> {
    let mut check = Check { index, violations };
    let outcome = outcome(&input, &mut check);
    let case = of_case.then(|| case(input.test_case_id, input.identifier, &mut check)).flatten();
    let mut numbers = HashSet::with_capacity(input.steps.len());
    for (place, step) in input.steps.iter().enumerate() {
        if !numbers.insert(step.step_nr) {
            check.refuse(&format!("Steps/{place}/StepNr"), "must not be that of another step");
        }
        check_step(place, step, &mut check);
    }
    let mut link = |field, link: Option<String>| {
        let link = link.unwrap_or_default();
        check.link(field, &link);
        link
    };
    let mut detail = Detail {
        steps: Vec::new(),
        artifacts_uri: link("ArtifactsUri", input.artifacts_uri),
        report_uri: link("ReportUri", input.report_uri),
        debug_log_uri: link("DebugLogUri", input.debug_log_uri),
        execution_log_uri: link("ExecutionLogUri", input.execution_log_uri),
        installation_log_uri: link("InstallationLogUri", input.installation_log_uri),
    };
    if check.violations.is_empty() {
        let stored: Vec<StoredStep> = input.steps.into_iter().map(StoredStep::from).collect();
        match writer.write(&stored)? {
            Some(steps) => detail.steps = steps,
            None => check.refuse("Steps", format!("must have at most {} bytes", steps::LARGEST)),
        }
    }
    Ok(Reported { case, outcome, detail })
}

fn case(id: Option<String>, identifier: Option<String>, check: &mut Check<'_>) -> Option<Case> {
    let Some(id) = id else {
        match &identifier {
            Some(identifier) => check.text("Identifier", identifier, LARGEST_TEXT),
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

fn outcome(input: &InstanceResultInput, check: &mut Check<'_>) -> Outcome {
    let instance_nr = input.instance_nr.unwrap_or(1);
    if instance_nr < 1 {
        check.refuse("InstanceNr", "must be 1 or more");
    }
    match input.result() {
        TestResult::Unspecified => check.refuse("Result", "must be given"),
        TestResult::NotExecuted => check.refuse("Result", "must be that of an executed test"),
        _ => {}
    }
    let (start, finish) = (input.start_date_time, input.finish_date_time);
    let between = start.zip(finish).map(|(start, finish)| (finish.0 - start.0).as_seconds_f64());
    if between.is_some_and(|seconds| seconds < 0.0) {
        check.refuse("FinishDateTime", "must not be before StartDateTime");
    }
    let told = input.duration_in_sec;
    check.duration("DurationInSec", told.unwrap_or_default());
    Outcome {
        instance_nr,
        result: input.result(),
        start_date_time: start.or_else(|| shifted(finish?, -told?)),
        finish_date_time: finish.or_else(|| shifted(start?, told?)),
        duration_in_sec: told.or(between).unwrap_or_default(),
    }
}

/// The time so many seconds later; unknown if that is beyond the calendar.
pub(crate) fn shifted(time: Timestamp, seconds: f64) -> Option<Timestamp> {
    let microseconds = (seconds.abs() <= LONGEST).then_some(seconds * 1e6)?;
    #[expect(clippy::cast_possible_truncation, reason = "it was just checked to fit")]
    let time = time.0.checked_add_signed(TimeDelta::microseconds(microseconds.round() as i64))?;
    (0..=9999).contains(&time.year()).then_some(Timestamp(time))
}

fn check_step(place: usize, step: &StepResultInput, check: &mut Check<'_>) {
    let at = |field: &str| format!("Steps/{place}/{field}");
    if step.step_nr < 1 {
        check.refuse(&at("StepNr"), "must be 1 or more");
    }
    if step.result() == TestResult::Unspecified {
        check.refuse(&at("Result"), "must be given");
    }
    check.duration(&at("DurationInSec"), step.duration_in_sec);
    for (field, text) in [
        ("TestInput", &step.test_input),
        ("ExpectedResult", &step.expected_result),
        ("ActualResult", &step.actual_result),
    ] {
        check.text(&at(field), text.as_deref().unwrap_or_default(), LARGEST_TEXT);
    }
    check.link(&at("Thumbnail"), step.thumbnail.as_deref().unwrap_or_default());
    for (number, link) in step.screenshots.iter().enumerate() {
        check.link(&at(&format!("Screenshots/{number}")), link);
    }
    for (number, text) in step.soft_verification.iter().enumerate() {
        check.text(&at(&format!("SoftVerification/{number}")), text, LARGEST_TEXT);
    }
}
