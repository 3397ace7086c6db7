//! Kinds of lines in the texts of failures.

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
    // Seeds
    "Random seed",
    "Using --random",
    "Seed:",
    "seed=",
];

/// Headings of stack traces.
const HEADINGS: [&str; 5] =
    ["stack backtrace:", "stacktrace:", "stack trace:", "backtrace:", "stack: |-"];

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

/// Recognizes `org.mockito.exceptions.verification.WantedButNotInvoked`.
fn is_qualified(name: &str) -> bool {
    let class = name.rsplit('.').next().unwrap_or_default();
    name.matches('.').count() > 1 && class.starts_with(|char: char| char.is_ascii_uppercase())
}

/// Returns a line without the word that introduces the name of an error.
pub(crate) fn without_cause(line: &str) -> &str {
    CAUSES.iter().find_map(|cause| line.strip_prefix(cause)).unwrap_or(line)
}

/// Returns whether a line is the first of a panic in Rust.
pub(crate) fn is_panic(line: &str) -> bool {
    line.starts_with("thread '") && line.contains(" panicked at ")
}

/// Returns whether a line is a stack frame, or the heading of a stack trace.
pub(crate) fn is_frame(line: &str) -> bool {
    is_called(line)
        || is_java_frame(line)
        || is_python_frame(line)
        || line.starts_with("❯ ")
        || line.starts_with("goroutine ") && line.ends_with("]:")
        || line.starts_with("... ") && (line.ends_with(" more") || line.ends_with(" omitted"))
        || line.starts_with('#') && line[1..].starts_with(|char: char| char.is_ascii_digit())
        || line.starts_with("note: run with `RUST_BACKTRACE")
        || HEADINGS.iter().any(|heading| line.eq_ignore_ascii_case(heading))
        || line.contains('@') && ends_with_position(line)
}

/// Recognizes `at shop.Cart.add(Cart.java:7)`, `at async cart.js:7:3` and `at Shop.Add() in Cart.cs`.
fn is_called(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("at ") else { return false };
    let rest = ["async ", "new "].iter().find_map(|word| rest.strip_prefix(word)).unwrap_or(rest);
    let place = rest.split(' ').next().unwrap_or_default();
    place.contains(['.', '/', '(', ':', '<', '\\']) || rest.ends_with(')')
}

/// Recognizes `shop.Cart.add(Cart.java:7)`.
fn is_java_frame(line: &str) -> bool {
    let Some((method, place)) = line.split_once('(') else { return false };
    let Some(place) = place.strip_suffix(')') else { return false };
    let is_place = ["Native Method", "Unknown Source"].contains(&place)
        || [".java", ".kt", ".scala", ".groovy"].iter().any(|language| place.contains(language));
    is_place && !method.contains(' ')
}

/// Recognizes `File "cart.py", line 7`, `cart.py:7: in add` and `cart.py:7: ValueError`.
fn is_python_frame(line: &str) -> bool {
    if line.starts_with("File \"") && line.contains("\", line ") {
        return true;
    }
    let Some((_, place)) = line.split_once(".py:") else { return false };
    let rest = place.trim_start_matches(|char: char| char.is_ascii_digit());
    let Some(rest) = rest.strip_prefix(':').filter(|_| rest.len() < place.len()) else {
        return false;
    };
    let rest = rest.trim();
    rest.is_empty() || rest.starts_with("in ") || !rest.contains(' ')
}

/// Returns whether a line ends with `:7:3`, which are a line and a column.
fn ends_with_position(line: &str) -> bool {
    let mut parts = line.rsplitn(3, ':');
    let mut is_number = || {
        let part = parts.next().unwrap_or_default();
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    is_number() && is_number()
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
    fn frames_excerpts_and_rulers_end_a_description() {
        let lines = [
            "at toBe (/home/ci/shop.test.js:3:138)",
            "at async Promise.all (index 0)",
            "at new Promise (<anonymous>)",
            "at Shop.Cart.Add() in /home/ci/Cart.cs:line 7",
            "at shop.CartTest.total(CartTest.java:7)",
            "shop.CartTest.total(CartTest.java:7)",
            "jdk.internal.reflect.NativeMethodAccessorImpl.invoke0(Native Method)",
            "... 23 more",
            "❯ shop.test.mjs:2:122",
            "File \"/home/ci/cart.py\", line 7, in add",
            "test_shop.py:20: AssertionError",
            "test_shop.py:20: in test_total",
            "goroutine 6 [running]:",
            "run@http://localhost:8080/cart.js:7:3",
            "#0 0x55d2c3a1e0a3 <unknown>",
            "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
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
