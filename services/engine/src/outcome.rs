//! What came of a command: what it wrote, or else how it ended.

use std::{fs::File, io::BufReader, io::ErrorKind, path::Path, process::ExitStatus};

use anyhow::{Context, Result, bail};
use assay_junit::Test;
use assay_proto::{
    TestResult,
    execution::{InstanceResultInput, StepResultInput},
};

pub(crate) const RESULT_FILE: &str = "result.json";
pub(crate) const JUNIT_FILE: &str = "junit.xml";

/// What a result file may have at most, in bytes.
const LARGEST: u64 = 8 << 20;

/// How many tests of a JUnit file become steps.
const MOST_STEPS: usize = 1000;

/// How a command ended.
pub(crate) struct Ended {
    pub(crate) command: String,
    pub(crate) status: ExitStatus,
    /// The end of what it said.
    pub(crate) output: String,
    pub(crate) seconds: f64,
}

/// Reads what came of a command that had these files to write into. Fails where it cannot be read.
pub(crate) async fn read(files: &Path, ended: &Ended) -> Result<InstanceResultInput> {
    let instance = if let Some(result) = result_file(&files.join(RESULT_FILE)).await? {
        result
    } else if let Some(tests) = junit_file(&files.join(JUNIT_FILE))? {
        of_tests(&tests, ended)
    } else {
        of_status(ended)
    };
    let told = instance.duration_in_sec.or_else(|| {
        let both = instance.start_date_time.is_some() && instance.finish_date_time.is_some();
        (!both).then_some(ended.seconds)
    });
    Ok(InstanceResultInput { duration_in_sec: told, ..instance })
}

async fn result_file(file: &Path) -> Result<Option<InstanceResultInput>> {
    let size = match tokio::fs::metadata(file).await {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).context("the result file cannot be read"),
    };
    if size > LARGEST {
        bail!("the result file has more than {} MiB", LARGEST >> 20);
    }
    let json = tokio::fs::read(file).await.context("the result file cannot be read")?;
    let result: InstanceResultInput =
        serde_json::from_slice(&json).context("the result file is not as it should be")?;
    if result.result() == TestResult::Unspecified {
        bail!("the result file has no Result");
    }
    Ok(Some(result))
}

/// The tests in a JUnit file, if there is one.
fn junit_file(file: &Path) -> Result<Option<Vec<Test>>> {
    let file = match File::open(file) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).context("the JUnit file cannot be read"),
    };
    let mut tests = Vec::new();
    assay_junit::read(BufReader::new(file), |test| {
        if tests.len() < MOST_STEPS {
            tests.push(test);
        }
        Ok(())
    })
    .context("the JUnit file cannot be read")?;
    Ok(Some(tests))
}

/// The worst result of some tests, with a step for each thing that they tell.
fn of_tests(tests: &[Test], ended: &Ended) -> InstanceResultInput {
    let mut steps: Vec<StepResultInput> = tests.iter().flat_map(Test::steps).collect();
    let worst = tests.iter().map(Test::result).max_by_key(|result| severity(*result));
    let result = match worst {
        // A command that fails says so, whatever it has written before.
        Some(TestResult::Passed | TestResult::Canceled) | None if !ended.status.success() => {
            steps.push(last_step(ended, TestResult::Error));
            TestResult::Error
        }
        None => {
            steps.push(last_step(ended, TestResult::Error));
            TestResult::Error
        }
        Some(worst) => worst,
    };
    for (step, nr) in steps.iter_mut().zip(1..) {
        step.step_nr = nr;
    }
    let seconds = tests.iter().map(|test| test.seconds).sum();
    let started = tests.iter().filter_map(|test| test.start).min();
    InstanceResultInput {
        result: result.into(),
        steps,
        start_date_time: started,
        duration_in_sec: Some(seconds),
        ..InstanceResultInput::default()
    }
}

/// A test that was skipped does not spoil what has passed.
fn severity(result: TestResult) -> u8 {
    match result {
        TestResult::Error => 4,
        TestResult::Failed => 3,
        TestResult::Aborted => 2,
        TestResult::Passed => 1,
        TestResult::Canceled | TestResult::NotExecuted | TestResult::Unspecified => 0,
    }
}

/// What an exit code says: 0 for passed, another one for failed; a command that did not get to its
/// end has no say.
fn of_status(ended: &Ended) -> InstanceResultInput {
    let result = match ended.status.code() {
        Some(0) => TestResult::Passed,
        Some(_) => TestResult::Failed,
        None => TestResult::Error,
    };
    InstanceResultInput {
        result: result.into(),
        steps: vec![last_step(ended, result)],
        ..InstanceResultInput::default()
    }
}

/// How the command ended, for the people who look at it.
fn last_step(ended: &Ended, result: TestResult) -> StepResultInput {
    let said = ended.output.trim();
    let actual = if ended.status.success() {
        said.to_owned()
    } else {
        format!("{}\n\n{said}", ended.status).trim_end().to_owned()
    };
    StepResultInput {
        step_nr: 1,
        test_input: Some(ended.command.clone()),
        actual_result: Some(actual),
        result: result.into(),
        duration_in_sec: ended.seconds,
        ..StepResultInput::default()
    }
}
