//! Conversion of a test to the steps of an instance.

use assay_proto::{TestResult, execution::StepResultInput};

use crate::{Attempt, OUTPUT, Test};

impl Test {
    /// Returns one step for each problem, and one for a test that passed or was skipped.
    pub fn steps(&self) -> Vec<StepResultInput> {
        let has_attempts =
            self.problems.iter().any(|problem| problem.kind.attempt != Attempt::Decisive);
        let input = self.path().join(" / ");
        let step = |number: usize, result: TestResult, actual_result: String| StepResultInput {
            step_nr: i32::try_from(number).unwrap_or(i32::MAX),
            result: result.into(),
            test_input: Some(if has_attempts {
                format!("{input} (attempt {number})")
            } else {
                input.clone()
            }),
            actual_result: Some(actual_result),
            ..StepResultInput::default()
        };
        let mut steps: Vec<StepResultInput> = self
            .problems
            .iter()
            .zip(1..)
            .map(|(problem, number)| StepResultInput {
                duration_in_sec: problem.seconds.unwrap_or_default(),
                ..step(number, problem.kind.result(), described(&problem.message, &problem.text))
            })
            .collect();
        let result = self.result();
        if matches!(result, TestResult::Passed | TestResult::Canceled) {
            let reason = self.skipped.clone().unwrap_or_default();
            steps.push(step(steps.len() + 1, result, reason));
        }
        // The duration of the test is that of its decisive attempt.
        let decisive = if result == TestResult::Passed { steps.len() - 1 } else { 0 };
        steps[decisive].duration_in_sec = self.seconds;
        if let Some(last) = steps.last_mut()
            && !self.problems.is_empty()
            && !self.output.trim().is_empty()
        {
            let output = format!("{OUTPUT}{}", self.output.trim());
            let text = last.actual_result.take().unwrap_or_default();
            last.actual_result = Some(described(&text, &output));
        }
        steps
    }
}

/// Joins a message and a text. Tools often repeat the message at the start of the text.
fn described(message: &str, text: &str) -> String {
    let (message, text) = (message.trim(), text.trim());
    if message.is_empty() || text.starts_with(message) {
        text.to_owned()
    } else if text.is_empty() {
        message.to_owned()
    } else {
        format!("{message}\n\n{text}")
    }
}
