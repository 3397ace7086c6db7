//! Kinds of lines in the texts of failures.

use crate::frames::is_frame;

/// Starts of lines that say nothing about the cause, or vary with the options of a tool.
const NOISE: &[&str] = &[
    // Playwright
    "Error Context: ",
    "attachment #",
    // Jest: the name of the test
    "● ",
    // node:test: the legend of a difference, and the fields of its own error
    "+ actual - expected",
    "location: '",
    "failureType: '",
    "duration_ms: ",
    "error: |-",
    "code: '",
    // pytest
    "Use -v",
    "Full diff:",
    "Omitting ",
    "Common items:",
    // Selenium
    "(Session info:",
    "For documentation on this error",
    "Command duration or timeout:",
    "Screenshot:",
    "Build info:",
    "System info:",
    "Driver info:",
    "Session ID:",
    "Session info:",
    "Capabilities {",
    "Element: [",
    "Command: [",
    // Go
    "=== ",
    "--- FAIL:",
    "--- PASS:",
    "--- SKIP:",
    "Error Trace:",
    "Test:  ",
    // Mockito
    "-> at ",
    // RSpec: the line of the test
    "Failure/Error: ",
    // Seeds
    "Random seed",
    "Using --random",
    "Seed:",
    "seed=",
];

/// Endings of names of errors.
const ERRORS: [&str; 8] =
    ["Error", "Exception", "Failure", "Failed", "Fault", "Timeout", "Interrupt", "Exit"];

/// Words that precede the name of an error.
const CAUSES: [&str; 6] = ["Uncaught ", "Unhandled ", "Caused by: ", "[cause]: ", "cause: ", "=> "];

/// Mark of `node:test` at its own error, which wraps that of the test.
pub(crate) const WRAPPER: &str = "[ERR_TEST_FAILURE]: ";

/// Returns whether a line says nothing about the cause.
pub(crate) fn is_noise(line: &str) -> bool {
    NOISE.iter().any(|start| line.starts_with(start))
        || line.contains(WRAPPER)
        || line.strip_prefix("Timeout: ").is_some_and(is_duration)
        || ["- Expected", "+ Received"].iter().any(|side| is_legend(line, side))
        || line.chars().all(|char| "{}[](),;".contains(char))
        // A test in Go whose subtest failed.
        || line == "Failed"
}

/// Recognizes `5000ms` and `4 s.`.
fn is_duration(text: &str) -> bool {
    text.starts_with(|char: char| char.is_ascii_digit()) && text.len() < 10
}

/// Recognizes `- Expected  - 3`, the legend of a difference in Jest and Vitest.
fn is_legend(line: &str, side: &str) -> bool {
    line.strip_prefix(side).is_some_and(|count| !count.contains(char::is_alphabetic))
}

/// Returns whether a line ends the description of a failure: a stack frame, an excerpt of code, a
/// ruler, or the values of an assertion that Mocha, TAP and Testify add to a message that contains them.
pub(crate) fn is_end(line: &str) -> bool {
    let is_repetition = ["+ expected - actual", "name: 'AssertionError'", "Diff:"].contains(&line);
    is_frame(line) || is_excerpt(line) || is_ruler(line) || is_repetition
}

/// Returns whether a line starts with the name of an error, such as `shop.CartError: empty`.
pub(crate) fn is_error(line: &str) -> bool {
    let line = without_cause(line);
    let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
    let bare = name.strip_suffix(':').unwrap_or(name);
    let is_named = bare.starts_with(|char: char| char.is_ascii_alphabetic())
        && bare.chars().all(|char| char.is_alphanumeric() || "._$:".contains(char))
        && (ERRORS.iter().any(|ending| bare.ends_with(ending)) || is_qualified(bare));
    let is_followed = bare.len() < name.len()
        || rest.starts_with(": ")
        || rest.starts_with('[') && rest.contains("]:")
        || rest.is_empty() && bare.len() > 9;
    is_named && is_followed || line.starts_with("panic: ") || is_panic(line)
}

/// Recognizes `org.mockito.exceptions.verification.WantedButNotInvoked` and `Errno::ENOENT`.
fn is_qualified(name: &str) -> bool {
    let class = name.rsplit(['.', ':']).next().unwrap_or_default();
    let is_nested = name.matches('.').count() > 1 || name.contains("::");
    is_nested && class.starts_with(|char: char| char.is_ascii_uppercase())
}

/// Returns a line without the word that introduces the name of an error.
pub(crate) fn without_cause(line: &str) -> &str {
    CAUSES.iter().find_map(|cause| line.strip_prefix(cause)).unwrap_or(line)
}

/// Returns whether a line is the first of a panic in Rust.
pub(crate) fn is_panic(line: &str) -> bool {
    line.starts_with("thread '") && line.contains(" panicked at ")
}

/// Recognizes `> 7 | cart.add()`, and the marks below.
fn is_excerpt(line: &str) -> bool {
    let code = line.strip_prefix('>').unwrap_or(line).trim_start();
    let code = code.trim_start_matches(|char: char| char.is_ascii_digit()).trim_start();
    let is_marks = !line.is_empty() && line.chars().all(|char| "^~ |".contains(char));
    code.starts_with('|') || is_marks || line.starts_with("--> ")
}

/// Recognizes `-----`, `_ _ _` and `── Retry ──`.
fn is_ruler(line: &str) -> bool {
    let is_drawn = |char: char| "-=_~*─━═⎯ ".contains(char);
    let is_drawing = line.chars().all(is_drawn) && line.chars().take(4).count() > 3;
    is_drawing || ["───", "⎯⎯⎯", "=====", "_____"].iter().any(|ruler| line.contains(ruler))
}

#[cfg(test)]
mod tests {
    use super::{is_end, is_error, is_noise};

    #[test]
    fn excerpts_and_rulers_end_a_description() {
        let lines = [
            "> 6 |   test('refuses', async () => {",
            "|          ^",
            "^^^^^^^^",
            "_ _ _ _ _ _",
            "[chromium] › shop.spec.js:9:3 › times out ────────",
        ];
        for line in lines {
            assert!(is_end(line), "{line}");
        }
    }

    #[test]
    fn messages_do_not_end_a_description() {
        let lines = [
            "at least one item is missing",
            "cart_test.go:6: total is 3, want 4",
            "order #17 is not paid",
            "- 401",
            "mail to ci@shop.test was not sent",
            "expected [] to include 'pen'",
            "Timeout: no answer",
            "- Expected a paid order",
        ];
        for line in lines {
            assert!(!is_end(line) && !is_noise(line), "{line}");
        }
    }

    #[test]
    fn settings_and_legends_are_noise() {
        let lines = [
            "Timeout: 5000ms",
            "- Expected  - 3",
            "+ Received",
            "=== RUN   TestTotal",
            "(Session info: chrome=148.0.7778.167)",
            "Use -v to get more diff",
            "},",
        ];
        for line in lines {
            assert!(is_noise(line), "{line}");
        }
    }

    #[test]
    fn errors_are_recognized_by_their_names() {
        let errors = [
            "AssertionError: expected 200 to be 401",
            "AssertionError [ERR_ASSERTION]: 200 == 401",
            "java.lang.NullPointerException",
            "System.TimeoutException : The operation has timed out.",
            "Caused by: java.net.ConnectException: Connection refused",
            "Failed: DID NOT RAISE ValueError",
            "Errno::ENOENT: No such file or directory @ rb_sysopen - a.csv",
            "panic: assignment to entry in nil map [recovered]",
            "thread 'tests::total' (17) panicked at src/lib.rs:7:28:",
        ];
        for line in errors {
            assert!(is_error(line), "{line}");
        }
        let others =
            ["Error Context: a.md", "failed on setup with \"KeyError: 'a'\"", "Error", "a: Error"];
        for line in others {
            assert!(!is_error(line), "{line}");
        }
    }
}
