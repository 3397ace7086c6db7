//! Conversion of a test to the steps of an instance.

use assay_proto::{TestResult, execution::StepResultInput};

use crate::{Attempt, OUTPUT, Problem, Step, Test, texts::storable};

impl Test {
    /// Returns the steps of all attempts, one after the other.
    pub fn steps(&self) -> Vec<StepResultInput> {
        let mut steps = Vec::new();
        for (attempt, number) in self.attempts.iter().zip(1..) {
            let number = (self.attempts.len() > 1).then_some(number);
            attempt.add_to(&mut steps, &self.input(), number);
        }
        let mut output = self.attempts.iter().map(|attempt| attempt.output.trim());
        let output = output.rfind(|output| !output.is_empty()).unwrap_or_default();
        let failed = self.attempts.iter().any(|attempt| !attempt.problems.is_empty());
        finished(steps, if failed { output } else { "" })
    }

    /// Returns the steps of an attempt: those that the tool reports, one for each further problem,
    /// and one for an attempt without any.
    pub fn steps_of(&self, attempt: &Attempt) -> Vec<StepResultInput> {
        let mut steps = Vec::new();
        attempt.add_to(&mut steps, &self.input(), None);
        finished(steps, if attempt.problems.is_empty() { "" } else { attempt.output.trim() })
    }

    /// Returns the input of steps that have no name.
    fn input(&self) -> String {
        let input = self.path().join(" / ");
        if self.parameters.is_empty() { input } else { format!("{input} [{}]", self.variant()) }
    }
}

/// Numbers steps, and adds the output to the last one.
fn finished(mut steps: Vec<StepResultInput>, output: &str) -> Vec<StepResultInput> {
    for (step, number) in steps.iter_mut().zip(1..) {
        step.step_nr = number;
    }
    if let Some(last) = steps.last_mut().filter(|_| !output.is_empty()) {
        let text = last.actual_result.take().unwrap_or_default();
        last.actual_result = Some(described(&text, &format!("{OUTPUT}{output}")));
    }
    steps
}

impl Attempt {
    fn add_to(&self, steps: &mut Vec<StepResultInput>, input: &str, number: Option<usize>) {
        let numbered = |input: &str| match number {
            Some(number) => format!("{input} (attempt {number})"),
            None => input.to_owned(),
        };
        let step = |input: &str, result: TestResult, seconds: f64, text: String| StepResultInput {
            result: result.into(),
            duration_in_sec: seconds,
            test_input: Some(storable(&numbered(input))),
            actual_result: Some(storable(&text)),
            ..StepResultInput::default()
        };
        for Step { depth, name, result, seconds, message } in &self.steps {
            let name = format!("{}{name}", "  ".repeat(*depth));
            steps.push(step(&name, *result, *seconds, message.trim().to_owned()));
        }
        let mut seconds = if self.steps.is_empty() { self.seconds } else { 0.0 };
        let is_shown = |problem: &Problem| {
            let is_same = |step: &Step| step.message.trim() == problem.message.trim();
            !problem.message.is_empty() && problem.text.is_empty() && self.steps.iter().any(is_same)
        };
        for problem in self.problems.iter().filter(|problem| !is_shown(problem)) {
            let text = described(&problem.message, &problem.text);
            // The duration of an attempt is that of its first step.
            steps.push(step(input, problem.nature.result(), std::mem::take(&mut seconds), text));
        }
        if self.problems.is_empty() && (self.steps.is_empty() || !self.reason.is_empty()) {
            steps.push(step(input, self.result, seconds, self.reason.clone()));
        }
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
