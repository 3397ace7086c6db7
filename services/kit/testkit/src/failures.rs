//! Unexpected failures of the code under test: all that it logs as an error. `with-servers` reports those
//! of all tests of a run, and fails. Errors in the logs of libraries, for instance about a server that a
//! test has stopped, are not counted.

use std::{
    env, fmt as format,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicBool, Ordering},
};

use tracing_subscriber::{
    Layer as _,
    filter::{LevelFilter, Targets},
    fmt,
    layer::SubscriberExt as _,
    registry,
    util::SubscriberInitExt as _,
};

use crate::test_dir;

/// The directory of failures in that of a run.
const DIRECTORY: &str = "failures";

static ARE_EXPECTED: AtomicBool = AtomicBool::new(false);

/// Lets the code under test fail from now on, because this test makes it fail.
pub fn expect_failures() {
    ARE_EXPECTED.store(true, Ordering::Relaxed);
}

/// Records what the code in this process logs as an error.
pub(crate) fn watch() {
    let own = Targets::new().with_target("assay", LevelFilter::ERROR);
    let lines = fmt::layer().with_ansi(false).with_writer(|| Recorder).with_filter(own);
    // A test may have a subscriber of its own, and many databases.
    let _ = registry().with(lines).try_init();
}

/// Returns the recorded failures of a run, each with the name of its test.
pub fn recorded(run: &Path) -> io::Result<Vec<Recorded>> {
    let directory = run.join(DIRECTORY);
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let read = |entry: io::Result<fs::DirEntry>| {
        let path = entry?.path();
        let test = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Recorded { test, log: fs::read_to_string(path)? })
    };
    fs::read_dir(directory)?.map(read).collect()
}

/// The failures of a test.
#[derive(Debug)]
pub struct Recorded {
    test: String,
    log: String,
}

impl format::Display for Recorded {
    fn fmt(&self, f: &mut format::Formatter<'_>) -> format::Result {
        write!(f, "{}:\n{}", self.test, self.log)
    }
}

/// Appends lines to the file of the test.
struct Recorder;

impl Write for Recorder {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if !ARE_EXPECTED.load(Ordering::Relaxed) {
            let path = file().map_err(io::Error::other)?;
            File::options().create(true).append(true).open(path)?.write_all(line)?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn file() -> anyhow::Result<PathBuf> {
    let directory = test_dir()?.join(DIRECTORY);
    fs::create_dir_all(&directory)?;
    let test = env::args().find(|argument| argument.contains("::")).unwrap_or_default();
    Ok(directory.join(format!("{test} {}", process::id())))
}
