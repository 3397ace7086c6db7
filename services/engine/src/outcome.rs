//! The result of a command: from its result file, its JUnit file or its exit code.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    fs::File,
    io::{BufReader, Read},
    path::Path,
    process::ExitStatus,
};

use anyhow::{Context, Result, bail, ensure};
use assay_formats::{Collected, Test, plausible_seconds};
use assay_proto::{
    TestResult,
    execution::{InstanceResultInput, StepResultInput},
};
use assay_weight::Weight;
use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

pub(crate) const RESULT_FILE: &str = "result.json";
pub(crate) const JUNIT_FILE: &str = "junit.xml";

/// Maximum size of a result file, and number of bytes read of a JUnit file.
const MAX_FILE: u64 = 8 << 20;
const MAX_JUNIT_FILE: u64 = 64 << 20;

/// Maximum number of tests of a JUnit file whose steps are reported, and maximum size of these as JSON, in bytes. Assay
/// stores up to 1 MiB, with the output of the command.
const MAX_TESTS: usize = 1000;
const MAX_STEPS: usize = 768 << 10;

/// A finished command.
pub(crate) struct Finished {
    pub(crate) command: String,
    pub(crate) status: ExitStatus,
    /// End of its standard output and standard error.
    pub(crate) output: String,
    /// Whether it was stopped because it took too long.
    pub(crate) timed_out: bool,
    pub(crate) seconds: f64,
}

/// Reads the result of a command that had this folder for its files. Fails if a file is malformed.
pub(crate) fn read(files: &Path, finished: &Finished) -> Result<InstanceResultInput> {
    // The files of a command that was stopped may be incomplete.
    let instance = if finished.timed_out {
        from_status(finished)
    } else if let Some(result) = result_file(&files.join(RESULT_FILE))? {
        result
    } else if let Some(tests) = junit_file(&files.join(JUNIT_FILE))? {
        from_tests(&tests, finished)
    } else {
        from_status(finished)
    };
    let duration = instance.duration_in_sec.or_else(|| {
        let both = instance.start_date_time.is_some() && instance.finish_date_time.is_some();
        (!both).then_some(finished.seconds)
    });
    Ok(InstanceResultInput { duration_in_sec: duration, ..instance })
}

fn result_file(path: &Path) -> Result<Option<InstanceResultInput>> {
    let Some(file) = open(path).context("cannot read the result file")? else { return Ok(None) };
    let mut json = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut json).context("cannot read the result file")?;
    if json.len() as u64 > MAX_FILE {
        bail!("the result file exceeds {} MiB", MAX_FILE >> 20);
    }
    // `{}` stands for a step, which takes a hundred times as much memory.
    ensure!(!Weight::of(&json).is_excessive(), "the result file has too many values");
    let result: InstanceResultInput =
        serde_json::from_slice(&json).context("the result file is not a valid result")?;
    if result.result() == TestResult::Unspecified {
        bail!("the result file lacks the field Result");
    }
    Ok(Some(result))
}

/// Reads the tests in the JUnit file, if it exists.
fn junit_file(path: &Path) -> Result<Option<Vec<Test>>> {
    let Some(file) = open(path).context("cannot read the JUnit file")? else { return Ok(None) };
    let mut tests = Collected::default();
    let file = BufReader::new(file.take(MAX_JUNIT_FILE));
    assay_formats::read(file, &mut tests).context("cannot read the JUnit file")?;
    Ok(Some(tests.into_tests()))
}

/// Opens a file of the command. `None` if there is none. Fails for links and pipes: they could be files
/// of others, or never end.
fn open(path: &Path) -> Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP | Errno::MLINK) => bail!("a link is not a file"),
        Err(error) => return Err(error.into()),
    };
    ensure!(file.metadata()?.is_file(), "it is not a file");
    Ok(Some(file))
}

/// Combines tests into an instance with the worst result and the steps.
fn from_tests(tests: &[Test], finished: &Finished) -> InstanceResultInput {
    let mut steps = steps_of(tests);
    let worst = tests.iter().map(Test::result).max_by_key(|result| severity(*result));
    let result = match worst {
        // A command that fails after its tests passed is an error.
        Some(TestResult::Passed | TestResult::Canceled) | None if !finished.status.success() => {
            steps.push(last_step(finished, TestResult::Error));
            TestResult::Error
        }
        None => {
            steps.push(last_step(finished, TestResult::Error));
            TestResult::Error
        }
        Some(worst) => worst,
    };
    for (step, nr) in steps.iter_mut().zip(1..) {
        step.step_nr = nr;
    }
    let seconds = tests.iter().map(|test| test.seconds).sum();
    // Without a plausible duration, that of the command counts.
    let started = tests.iter().filter_map(|test| test.start).min();
    InstanceResultInput {
        result: result.into(),
        steps,
        start_date_time: started,
        duration_in_sec: plausible_seconds(Some(seconds)),
        ..InstanceResultInput::default()
    }
}

/// Returns the steps of tests in their order. If some have no room, those of the worst results are kept, and a last
/// step states the number of the others.
fn steps_of(tests: &[Test]) -> Vec<StepResultInput> {
    let mut order: Vec<usize> = (0..tests.len()).collect();
    order.sort_by_key(|index| Reverse(severity(tests[*index].result())));
    let (mut kept, mut room) = (BTreeMap::new(), MAX_STEPS);
    for index in order.into_iter().take(MAX_TESTS) {
        let steps = tests[index].steps();
        let size = steps.iter().map(size).sum();
        if let Some(rest) = room.checked_sub(size) {
            room = rest;
            kept.insert(index, steps);
        }
    }
    let left_out = tests.iter().enumerate().filter(|(index, _)| !kept.contains_key(index));
    let left_out: Vec<TestResult> = left_out.map(|(_, test)| test.result()).collect();
    let worst = left_out.iter().copied().max_by_key(|result| severity(*result));
    let note = worst.map(|worst| StepResultInput {
        test_input: Some("Tests that are left out".to_owned()),
        actual_result: Some(left_out.len().to_string()),
        result: worst.into(),
        ..StepResultInput::default()
    });
    kept.into_values().flatten().chain(note).collect()
}

/// Returns the size of a step as JSON, in bytes.
fn size(step: &StepResultInput) -> usize {
    serde_json::to_vec(step).as_ref().map_or(0, Vec::len)
}

/// Orders results from good to bad. A skipped test does not make a passed one worse.
fn severity(result: TestResult) -> u8 {
    match result {
        TestResult::Error => 4,
        TestResult::Failed => 3,
        TestResult::Aborted => 2,
        TestResult::Passed => 1,
        TestResult::Canceled | TestResult::NotExecuted | TestResult::Unspecified => 0,
    }
}

/// Returns the result that the exit code stands for: 0 is Passed, any other is Failed. A command that
/// was killed, or stopped because it took too long, is an Error.
fn from_status(finished: &Finished) -> InstanceResultInput {
    let result = match finished.status.code() {
        _ if finished.timed_out => TestResult::Error,
        Some(0) => TestResult::Passed,
        Some(_) => TestResult::Failed,
        None => TestResult::Error,
    };
    InstanceResultInput {
        result: result.into(),
        steps: vec![last_step(finished, result)],
        ..InstanceResultInput::default()
    }
}

/// Returns the result of a test that does not get its files.
pub(crate) fn unavailable(problem: &str) -> InstanceResultInput {
    let step = StepResultInput {
        step_nr: 1,
        test_input: Some("Get the files of the test".to_owned()),
        actual_result: Some(problem.to_owned()),
        result: TestResult::Error.into(),
        ..StepResultInput::default()
    };
    InstanceResultInput {
        result: TestResult::Error.into(),
        steps: vec![step],
        ..InstanceResultInput::default()
    }
}

/// Returns a step that shows the command, its exit status and its output.
fn last_step(finished: &Finished, result: TestResult) -> StepResultInput {
    let output = finished.output.trim();
    let actual = if finished.timed_out {
        let text = "Timed out: the test was stopped after the longest time that it may take";
        format!("{text}, {:.1} s\n\n{output}", finished.seconds).trim_end().to_owned()
    } else if finished.status.success() {
        output.to_owned()
    } else {
        format!("{}\n\n{output}", finished.status).trim_end().to_owned()
    };
    StepResultInput {
        step_nr: 1,
        test_input: Some(finished.command.clone()),
        actual_result: Some(actual),
        result: result.into(),
        duration_in_sec: finished.seconds,
        ..StepResultInput::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result of a command that has written this JUnit file.
    fn read_junit(cases: &[String]) -> InstanceResultInput {
        let dir = tempfile::tempdir().unwrap();
        let junit = format!("<testsuite name=\"s\">{}</testsuite>", cases.concat());
        std::fs::write(dir.path().join(JUNIT_FILE), junit).unwrap();
        let finished = Finished {
            command: "run".to_owned(),
            status: ExitStatus::default(),
            output: String::new(),
            timed_out: false,
            seconds: 1.0,
        };
        read(dir.path(), &finished).unwrap()
    }

    fn passed(nr: usize) -> String {
        format!("<testcase classname=\"c\" name=\"t{nr}\"/>")
    }

    fn failed(nr: usize, text: &str) -> String {
        format!(
            "<testcase classname=\"c\" name=\"t{nr}\"><failure message=\"no\">{text}</failure></testcase>"
        )
    }

    #[test]
    fn the_steps_of_many_tests_include_the_failure() {
        let mut cases: Vec<String> = (0..1500).map(passed).collect();
        cases[1400] = failed(1400, "why");
        let instance = read_junit(&cases);
        assert_eq!(instance.result(), TestResult::Failed);
        let steps = &instance.steps;
        let has_failed = |step: &&StepResultInput| step.result() == TestResult::Failed;
        assert_eq!((steps.len(), steps.iter().filter(has_failed).count()), (1001, 1));
        assert_eq!(steps[1000].actual_result.as_deref(), Some("500"));
    }

    #[test]
    fn the_steps_of_large_failures_are_not_larger_than_assay_stores() {
        let text = "x".repeat(30 << 10);
        let cases: Vec<String> = (0..60).map(|nr| failed(nr, &text)).collect();
        let instance = read_junit(&cases);
        assert_eq!(instance.result(), TestResult::Failed);
        assert!(serde_json::to_vec(&instance.steps).unwrap().len() < 1 << 20);
        let last = instance.steps.last().unwrap();
        assert_eq!(last.test_input.as_deref(), Some("Tests that are left out"));
    }
}
