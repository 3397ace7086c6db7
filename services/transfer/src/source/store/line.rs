//! Results as clients report them.

use serde_json::{Map, Value, json};

use crate::source::{
    model::{Outcome, Verdict},
    text::{clipped, name, stamp},
};

/// Returns a result as clients report it.
pub(super) fn result_line(
    case: &str,
    outcome: &Outcome,
    number: u16,
    attempt: u16,
) -> Map<String, Value> {
    let mut line = Map::new();
    let mut add = |field: &str, value: Value| line.insert(field.to_owned(), value);
    add("Identifier", case.into());
    let title = if outcome.name.trim().is_empty() { case } else { &outcome.name };
    add("Name", name(title).into());
    if outcome.variant.is_empty() {
        add("InstanceNr", number.into());
    } else {
        let variant = match number {
            1 => outcome.variant.clone(),
            _ => format!("{} #{number}", outcome.variant),
        };
        add("Variant", name(&variant).into());
    }
    if attempt > 1 {
        add("Attempt", attempt.into());
    }
    add("Result", outcome.verdict.name().into());
    let end = outcome.end.map(|end| outcome.start.map_or(end, |start| end.max(start)));
    for (field, time) in [("StartDateTime", outcome.start), ("FinishDateTime", end)] {
        if let Some(time) = time {
            add(field, stamp(time).into());
        }
    }
    if let Some(seconds) = outcome.seconds.filter(|seconds| (0.0..=1e9).contains(seconds)) {
        add("DurationInSec", seconds.into());
    }
    let steps = steps(outcome);
    if !steps.is_empty() {
        add("Steps", steps.into());
    }
    line
}

/// Returns the steps of a result. Its comment is part of the last one.
fn steps(outcome: &Outcome) -> Vec<Value> {
    let comment = match &outcome.verdict {
        Verdict::Unknown(status) => format!("Status: {status}\n{}", outcome.comment),
        _ => outcome.comment.clone(),
    };
    let comment = comment.trim().to_owned();
    let mut steps: Vec<Value> = (1..)
        .zip(&outcome.steps)
        .map(|(number, step)| {
            json!({
                "StepNr": number, "TestInput": clipped(&step.input),
                "ExpectedResult": clipped(&step.expected), "ActualResult": clipped(&step.actual),
                "Result": step.verdict.name(),
            })
        })
        .collect();
    if !comment.is_empty() || !outcome.files.is_empty() {
        let number = steps.len() + 1;
        let mut step = json!({
            "StepNr": number, "ActualResult": clipped(&comment), "Result": outcome.verdict.name(),
        });
        if !outcome.files.is_empty() {
            let names: Vec<_> = outcome.files.iter().map(|file| file.name.as_str()).collect();
            step["Screenshots"] = names.into();
        }
        steps.push(step);
    }
    steps
}
