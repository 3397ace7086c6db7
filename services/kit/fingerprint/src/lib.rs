//! Recognizes failures that have the same cause.
//!
//! [`Failure::of`] reads the actual result of a failing step, which is a message and a trace as a test
//! tool writes them, in three steps: `headline` finds the lines that state the cause, `normal` replaces
//! everything in them that differs between two runs, such as ports, ids and durations, and the rest
//! is hashed. Failures with one fingerprint have the same cause as far as their texts show.
//!
//! Two causes that share a fingerprint hide each other, whereas a cause with two fingerprints is
//! only listed twice. A rule that must choose keeps the difference.
//!
//! A new rule is a row in the tests of its module, with an example that a tool wrote, and a new
//! [`VERSION`].

mod ansi;
mod collapse;
mod fingerprint;
mod frames;
mod headline;
mod identifier;
mod lines;
mod meaning;
mod noise;
mod normal;
mod number;
mod path;
mod quotes;
mod selector;
mod word;

pub use self::{
    fingerprint::{Fingerprint, InvalidFingerprint},
    noise::{InvalidPattern, Noise},
};

/// Version of the rules. Fingerprints of different versions cannot be compared.
pub const VERSION: i16 = 1;

/// Size of the beginning of a text that is read, in bytes. A step has as much.
const READ: usize = 64 << 10;

/// Maximum number of characters of a headline.
const HEADLINE: usize = 400;

/// A failure, as far as its text identifies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub fingerprint: Fingerprint,
    /// The lines that state the cause, with their values: 1 to 4 lines, at most 400 characters.
    pub headline: String,
}

impl Failure {
    /// Reads the actual result of a failing step: its message and trace. Only the first 64 KiB count.
    ///
    /// Returns nothing for a text that is blank or says nothing, such as the `Failed` of a test whose
    /// subtest failed: failures without a known cause must not be grouped.
    pub fn of(actual_result: &str) -> Option<Self> {
        Self::with_noise(actual_result, &Noise::default())
    }

    /// Does the same, and leaves out what the patterns match. The headline has it.
    pub fn with_noise(actual_result: &str, noise: &Noise) -> Option<Self> {
        let text = plain(actual_result);
        Self::of_lines(&headline::lines(&text), noise)
    }

    /// Returns the failure that [`lines`] state, if there are any.
    pub fn of_lines(lines: &[impl AsRef<str>], noise: &Noise) -> Option<Self> {
        if lines.is_empty() {
            return None;
        }
        let lines: Vec<&str> = lines.iter().map(AsRef::as_ref).collect();
        let clear: Vec<_> = lines.iter().map(|line| noise.removed(line)).collect();
        let clear: Vec<&str> = clear.iter().map(AsRef::as_ref).collect();
        let fingerprint = Fingerprint::of(&normal::normalized(&clear));
        let headline = shortened(&lines[..lines.len().min(headline::VISIBLE)].join("\n"));
        Some(Self { fingerprint, headline })
    }
}

/// Returns the lines of the actual result of a failing step that state its cause, at most 8. There are none if
/// it says nothing.
pub fn lines(actual_result: &str) -> Vec<String> {
    headline::lines(&plain(actual_result)).into_iter().map(str::to_owned).collect()
}

fn plain(actual_result: &str) -> String {
    ansi::plain(&actual_result[..actual_result.floor_char_boundary(READ)])
}

/// Returns the beginning of a headline.
fn shortened(headline: &str) -> String {
    match headline.char_indices().nth(HEADLINE - 1) {
        Some((end, _)) if headline[end..].chars().nth(1).is_some() => {
            format!("{}…", headline[..end].trim_end())
        }
        _ => headline.to_owned(),
    }
}
