//! Progress on standard error. All that is printed may have texts of others.

use std::time::{Duration, Instant};

use anyhow::anyhow;
use assay_client::visible;

/// Interval between lines.
const INTERVAL: Duration = Duration::from_secs(5);

/// Counts records of a noun.
pub(crate) struct Progress {
    noun: &'static str,
    total: Option<u64>,
    done: u64,
    begun: Instant,
    printed: Instant,
}

impl Progress {
    pub(crate) fn new(noun: &'static str, total: Option<u64>) -> Self {
        let now = Instant::now();
        Self { noun, total, done: 0, begun: now, printed: now }
    }

    /// Counts records, and prints a line from time to time.
    pub(crate) fn add(&mut self, count: u64) {
        self.done += count;
        if self.printed.elapsed() >= INTERVAL {
            self.printed = Instant::now();
            self.print();
        }
    }

    /// Prints the last line.
    pub(crate) fn end(self) {
        if self.done > 0 {
            self.print();
        }
    }

    fn print(&self) {
        let (noun, done, seconds) = (self.noun, self.done, self.begun.elapsed().as_secs());
        match self.total {
            Some(total) if total > done => eprintln!("{noun}: {done} of {total}, {seconds} s"),
            _ => eprintln!("{noun}: {done}, {seconds} s"),
        }
    }
}

/// Prints something that a user should know.
pub(crate) fn note(text: impl std::fmt::Display) {
    eprintln!("{}", visible(&text.to_string()));
}

/// Returns an error with its causes as a text that is harmless where it is printed.
pub(crate) fn printable(error: &anyhow::Error) -> anyhow::Error {
    anyhow!("{}", visible(&format!("{error:#}")))
}
