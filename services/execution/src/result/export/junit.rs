//! Writes tests as JUnit XML. [`assay_formats::read`] reads the same tests, results, times and
//! messages.

use std::fmt::Write;

use assay_formats::{ABORTED, Nature, OUTPUT, Property};
use assay_ledger::{instance::steps::StoredStep, progress::instance::Outcome};
use assay_proto::{Label, TestResult, Timestamp};
use chrono::SecondsFormat;

use super::instance::{EarlierAttempt, Instance, Totals};

/// Maximum length of the attribute `message`, in characters. The element has the whole text.
const MESSAGE: usize = 1000;

/// Returns the beginning of a file with one suite.
pub(super) fn open(
    name: &str,
    start: Option<Timestamp>,
    seconds: f64,
    totals: Totals,
    properties: &[Property],
) -> String {
    let Totals { tests, failures, errors, skipped } = totals;
    let counts = format!(
        " tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\" \
         time=\"{seconds}\""
    );
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites");
    attribute(&mut xml, "name", name);
    xml.push_str(&counts);
    // Not on the suite: readers apply the time of a suite to tests without one.
    time(&mut xml, start);
    xml.push_str(">\n<testsuite");
    attribute(&mut xml, "name", name);
    xml.push_str(&counts);
    xml.push_str(">\n<properties>\n");
    for Property { name, value } in properties {
        property(&mut xml, name, value);
        xml.push('\n');
    }
    xml.push_str("</properties>\n");
    xml
}

/// The end of a file.
pub(super) const CLOSE: &str = "</testsuite>\n</testsuites>\n";

/// Writes one instance of a test, with the steps and the earlier attempts that failed.
pub(super) fn test(xml: &mut String, instance: &Instance<'_>) {
    let Instance { outcome, steps, earlier, .. } = instance;
    let (class, name) = instance.names();
    xml.push_str("<testcase");
    attribute(xml, "name", name);
    if let Some(class) = class {
        attribute(xml, "classname", class);
    }
    append(xml, format_args!(" time=\"{}\"", outcome.duration_in_sec));
    time(xml, outcome.start_date_time);
    xml.push('>');
    properties(xml, instance);
    if earlier.iter().any(|attempt| Nature::of(attempt.result).is_some()) {
        attempts(xml, outcome, steps, earlier);
    } else {
        problems(xml, outcome.result, steps);
    }
    xml.push_str("</testcase>\n");
}

/// Writes the labels of a test, and the links that are not labels as well. JUnit has no element for the
/// suites of a test, which may be different from those of the next one.
fn properties(xml: &mut String, instance: &Instance<'_>) {
    let label = |label: &Label| (label.name.clone(), label.value.clone());
    let mut properties: Vec<_> = instance.labels.iter().map(label).collect();
    for link in instance.links {
        let property = (link.kind.clone(), link.target.clone());
        if !properties.contains(&property) {
            properties.push(property);
        }
    }
    if properties.is_empty() {
        return;
    }
    xml.push_str("<properties>");
    for (name, value) in properties {
        property(xml, &name, &value);
    }
    xml.push_str("</properties>");
}

fn property(xml: &mut String, name: &str, value: &str) {
    xml.push_str("<property");
    attribute(xml, "name", name);
    attribute(xml, "value", value);
    xml.push_str("/>");
}

/// Writes the attempts that failed, of which there is an earlier one, as Surefire does: those of a
/// test that did not fail at last are flaky, the others are reruns of the first one.
fn attempts(xml: &mut String, outcome: &Outcome, steps: &[StoredStep], earlier: &[EarlierAttempt]) {
    let mut failed = earlier.iter().filter(|attempt| Nature::of(attempt.result).is_some());
    if Nature::of(outcome.result).is_some() {
        if let Some(first) = failed.next() {
            problems(xml, first.result, &first.steps);
        }
        for attempt in failed {
            rerun(xml, "rerun", attempt.result, attempt.seconds, &attempt.steps);
        }
        rerun(xml, "rerun", outcome.result, outcome.duration_in_sec, steps);
        return;
    }
    for attempt in failed {
        rerun(xml, "flaky", attempt.result, attempt.seconds, &attempt.steps);
    }
    if outcome.result != TestResult::Passed {
        problems(xml, outcome.result, steps);
    }
}

/// Writes an attempt as one problem.
fn rerun(xml: &mut String, kind: &str, result: TestResult, seconds: f64, steps: &[StoredStep]) {
    let nature = if result == TestResult::Failed { "Failure" } else { "Error" };
    let failing = steps.iter().rfind(|step| step.result() != TestResult::Passed);
    let text = failing.or(steps.last()).map_or("", |step| &step.actual_result);
    let seconds = format!(" time=\"{seconds}\"");
    problem(xml, &format!("{kind}{nature}"), &seconds, text);
}

/// Writes the steps that did not pass, and the output of the test.
fn problems(xml: &mut String, result: TestResult, steps: &[StoredStep]) {
    let failing: Vec<&StoredStep> =
        steps.iter().filter(|step| Nature::of(step.result()).is_some()).collect();
    let last = steps.last().map_or("", |step| &step.actual_result);
    if Nature::of(result).is_some() {
        let has_error = failing.iter().any(|step| step.result() == TestResult::Error);
        for step in &failing {
            // The worst of the written results is that of the test.
            let written =
                if result == TestResult::Error && has_error { step.result() } else { result };
            decisive(xml, written, without_output(&step.actual_result).0);
        }
        if failing.is_empty() {
            decisive(xml, result, without_output(last).0);
        }
    } else {
        for step in &failing {
            let is_error = step.result() == TestResult::Error;
            let element = if is_error { "flakyError" } else { "flakyFailure" };
            let seconds = format!(" time=\"{}\"", step.duration_in_sec);
            problem(xml, element, &seconds, without_output(&step.actual_result).0);
        }
        if result != TestResult::Passed {
            xml.push_str("<skipped");
            attribute(xml, "message", last);
            xml.push_str("/>");
        }
    }
    if let Some(output) = without_output(last).1 {
        xml.push_str("<system-out>");
        escape(xml, output, false);
        xml.push_str("</system-out>");
    }
}

/// Splits the text of a step from the output of the test below it.
pub(super) fn without_output(text: &str) -> (&str, Option<&str>) {
    if let Some(output) = text.strip_prefix(OUTPUT) {
        return ("", Some(output));
    }
    let found = text.match_indices(OUTPUT).find(|(start, _)| text[..*start].ends_with("\n\n"));
    found.map_or((text, None), |(start, _)| {
        (&text[..start - 2], Some(&text[start + OUTPUT.len()..]))
    })
}

/// Writes a problem that decides the result of the test. JUnit has no element for aborted tests.
/// Other readers see an error.
fn decisive(xml: &mut String, result: TestResult, text: &str) {
    match result {
        TestResult::Failed => problem(xml, "failure", "", text),
        TestResult::Error => problem(xml, "error", "", text),
        _ => problem(xml, "error", &format!(" type=\"{ABORTED}\""), text),
    }
}

fn problem(xml: &mut String, element: &str, attributes: &str, text: &str) {
    let message = text.lines().next().unwrap_or_default();
    let end = message.char_indices().nth(MESSAGE).map_or(message.len(), |(end, _)| end);
    xml.push('<');
    xml.push_str(element);
    attribute(xml, "message", &message[..end]);
    xml.push_str(attributes);
    xml.push('>');
    escape(xml, text, false);
    append(xml, format_args!("</{element}>"));
}

fn time(xml: &mut String, time: Option<Timestamp>) {
    if let Some(Timestamp(time)) = time {
        let time = time.to_rfc3339_opts(SecondsFormat::Micros, true);
        append(xml, format_args!(" timestamp=\"{time}\""));
    }
}

fn attribute(xml: &mut String, name: &str, value: &str) {
    append(xml, format_args!(" {name}=\""));
    escape(xml, value, true);
    xml.push('"');
}

fn append(xml: &mut String, text: std::fmt::Arguments<'_>) {
    xml.write_fmt(text).expect("writing to a string never fails");
}

/// Writes text with the escapes of XML. Control characters that XML cannot represent are replaced.
fn escape(xml: &mut String, text: &str, in_attribute: bool) {
    for char in text.chars() {
        match char {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' if in_attribute => xml.push_str("&quot;"),
            '\n' | '\t' if in_attribute => append(xml, format_args!("&#{};", char as u32)),
            '\n' | '\t' => xml.push(char),
            '\r' => xml.push_str("&#13;"),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => xml.push('\u{fffd}'),
            _ => xml.push(char),
        }
    }
}
