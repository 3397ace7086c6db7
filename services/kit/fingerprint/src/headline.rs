//! The lines of a text that state the cause of a failure.

use crate::{
    frames::is_frame,
    lines::{WRAPPER, is_end, is_error, is_noise, without_cause},
};

/// Maximum number of lines that a reader sees.
pub(crate) const VISIBLE: usize = 4;

/// Maximum number of lines that count. An assertion may state the expected value in the fifth line.
const MOST: usize = 8;

/// Heading of the output of a test, in the text of a step.
const OUTPUT: &str = "Output:";

/// Heading of Python's stack traces.
const TRACEBACK: &str = "Traceback (most recent call last):";

/// Returns the lines that state the cause, without indentation. There are at most 8, of which the
/// first 4 are the headline, and none if no line says anything.
pub(crate) fn lines(text: &str) -> Vec<&str> {
    let all: Vec<&str> = text.lines().map(str::trim_end).collect();
    let all = without_repetition(without_output(&all));
    let start = start(all);
    let mut found = collect(&start);
    if found.is_empty() {
        let mut rest = all.iter().map(|line| line.trim());
        found.extend(rest.find(|line| !line.is_empty() && !is_noise(line)));
    }
    let is_new = |cause: &&str| !found.iter().any(|line| line.contains(cause));
    if let Some(cause) = root_cause(all).filter(is_new) {
        found.truncate(MOST - 1);
        found.insert(found.len().min(VISIBLE - 1), cause);
    }
    found
}

/// Returns the lines above the output of the test, or the output if there is nothing above.
fn without_output<'l, 't>(all: &'l [&'t str]) -> &'l [&'t str] {
    let Some(heading) = all.iter().position(|line| *line == OUTPUT) else { return all };
    let (above, output) = all.split_at(heading);
    if above.iter().all(|line| line.is_empty()) { &output[1..] } else { above }
}

/// Returns the lines without the message, if the trace starts with it. They may differ in white
/// space, because an attribute in XML has no line ends.
fn without_repetition<'l, 't>(all: &'l [&'t str]) -> &'l [&'t str] {
    let [message, "", trace @ ..] = all else { return all };
    let mut words = trace.iter().flat_map(|line| line.split_whitespace());
    let is_repeated = message.split_whitespace().all(|word| words.next() == Some(word));
    if is_repeated { trace } else { all }
}

/// Returns the lines from the one that names the error.
fn start<'t>(all: &[&'t str]) -> Vec<&'t str> {
    if let Some(block) = marked(all) {
        return below_frames(block);
    }
    if let Some(heading) = all.iter().rposition(|line| line.trim_start().starts_with(TRACEBACK)) {
        let depth = indentation(all[heading]);
        let is_inside = |line: &&&str| line.is_empty() || indentation(line) > depth;
        return all[heading + 1..].iter().skip_while(is_inside).copied().collect();
    }
    let is_cause = |line: &&str| line.trim().starts_with("cause: ") && is_error(line.trim());
    let is_wrapped = |line: &&&str| line.contains(WRAPPER);
    let cause = all.iter().find(is_wrapped).and_then(|_| all.iter().position(is_cause));
    let is_first = |line: &&str| {
        is_error(line.trim()) && !line.contains(WRAPPER) && root_cause(&[line]).is_none()
    };
    let error = cause.or_else(|| all.iter().position(is_first));
    all[error.unwrap_or(0)..].to_vec()
}

/// Returns the last block of lines that pytest marks with an `E`, without the mark.
fn marked<'t>(all: &[&'t str]) -> Option<Vec<&'t str>> {
    let unmarked = |line: &&'t str| match line.strip_prefix('E')? {
        "" => Some(""),
        rest => rest.strip_prefix("   "),
    };
    let end = all.iter().rposition(|line| unmarked(line).is_some_and(|rest| !rest.is_empty()))? + 1;
    let start = all[..end].iter().rposition(|line| unmarked(line).is_none()).map_or(0, |at| at + 1);
    Some(all[start..end].iter().filter_map(unmarked).collect())
}

/// Returns a block from its error, if it starts with stack frames. Errors of syntax do.
fn below_frames(block: Vec<&str>) -> Vec<&str> {
    let has_frames = block.first().is_some_and(|line| is_frame(line.trim()));
    let error = block.iter().position(|line| is_error(line.trim())).filter(|_| has_frames);
    block.into_iter().skip(error.unwrap_or(0)).collect()
}

/// Returns the first lines up to a stack frame, an excerpt of code or a ruler.
fn collect<'t>(lines: &[&'t str]) -> Vec<&'t str> {
    let mut found: Vec<&str> = Vec::new();
    let mut lines = lines.iter().map(|line| line.trim());
    while let Some(line) = lines.next().filter(|_| found.len() < MOST) {
        if line.trim_matches(['=', ' ']) == "logs" || line == "Call log:" {
            let has_locator = found.iter().any(|line| line.starts_with("Locator: "));
            found.extend(lines.find_map(logged).filter(|_| !has_locator));
            break;
        }
        if is_end(line) && !found.is_empty() {
            break;
        }
        let line = bare(line);
        if !line.is_empty() && !is_end(line) && !is_noise(line) && !found.contains(&line) {
            // A trace repeats the message after the name of the error.
            found.pop_if(|message| is_error(line) && line.ends_with(*message));
            found.push(line);
        }
    }
    found
}

/// Returns the locator that Playwright waited for, or the status of a response, if a line of its
/// log contains it.
fn logged(line: &str) -> Option<&str> {
    let line = line.trim_start_matches(['-', ' ']);
    ["waiting for ", "← "].iter().any(|start| line.starts_with(start)).then_some(line)
}

/// Returns a message without the word that introduces it. TAP has `error: 'empty cart'`.
fn bare(line: &str) -> &str {
    let Some(text) = line.strip_prefix("error: ").or_else(|| line.strip_prefix("cause: ")) else {
        return without_cause(line);
    };
    let quoted = |mark| text.strip_prefix(mark)?.strip_suffix(mark);
    quoted('\'').or_else(|| quoted('"')).unwrap_or(text)
}

/// Returns the error that caused the others, in Java and JavaScript.
fn root_cause<'t>(all: &[&'t str]) -> Option<&'t str> {
    let after = |line: &&'t str, mark| line.trim().strip_prefix(mark);
    let java = all.iter().rev().find_map(|line| after(line, "Caused by: "));
    java.or_else(|| all.iter().rev().find_map(|line| after(line, "[cause]: ")))
}

/// Returns the number of spaces that a line starts with.
fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn the_last_marked_block_of_pytest_is_the_cause() {
        let text = "ShopError: empty\n\nE   KeyError: 'a'\n\ncart.py:7: KeyError\n\nE   ShopError: empty\nE   retry";
        assert_eq!(lines(text), ["ShopError: empty", "retry"]);
        let text = "E     File \"/home/ci/cart.py\", line 1\nE       x = (\nE   SyntaxError: '(' was never closed";
        assert_eq!(lines(text), ["SyntaxError: '(' was never closed"]);
    }

    #[test]
    fn the_error_below_the_last_traceback_is_the_cause() {
        let text = "Traceback (most recent call last):\n  File \"a.py\", line 1, in a\nKeyError: 'a'\n\n\
            During handling of the above exception, another exception occurred:\n\n\
            Traceback (most recent call last):\n  File \"b.py\", line 1, in b\n    b()\nShopError: empty";
        assert_eq!(lines(text), ["ShopError: empty"]);
    }

    #[test]
    fn the_first_error_up_to_a_frame_is_the_cause() {
        let text = "200 == 401\n\nAssertionError: 200 == 401\n    at test (a.js:7:3)\nError: other";
        assert_eq!(lines(text), ["AssertionError: 200 == 401"]);
    }

    #[test]
    fn a_message_that_the_trace_repeats_counts_once() {
        let text = "Wanted: add(\"pen\"); Actually: none\n\nWanted:\nadd(\"pen\");\nActually: none\n\tat a.B.c(B.java:7)";
        assert_eq!(lines(text), ["Wanted:", "add(\"pen\");", "Actually: none"]);
        let text = "IoException: a\nExecutionException: IoException: a";
        assert_eq!(lines(text), ["ExecutionException: IoException: a"]);
    }

    #[test]
    fn the_root_cause_is_added() {
        let text = "ShopException: empty\n\tat a.B.c(B.java:7)\nCaused by: IoException: a\n\tat a.B.d(B.java:8)\n\
            Caused by: ConnectException: refused\n\t... 7 more";
        assert_eq!(lines(text), ["ShopException: empty", "ConnectException: refused"]);
        let text = "ShopException: a\nb\nc\nd\ne\n\tat a.B.c(B.java:7)\nCaused by: IoException: f";
        let expected = ["ShopException: a", "b", "c", "IoException: f", "d", "e"];
        assert_eq!(lines(text), expected);
    }

    #[test]
    fn the_locator_of_a_log_is_added() {
        let text = "Error: locator.click: Timeout 5000ms exceeded.\nCall log:\n  - attempting\n\
            \x20 - waiting for locator('#pay')\n  - locator resolved to <a>";
        let expected =
            ["Error: locator.click: Timeout 5000ms exceeded.", "waiting for locator('#pay')"];
        assert_eq!(lines(text), expected);
    }

    #[test]
    fn the_output_of_a_test_counts_if_there_is_no_message() {
        assert_eq!(lines("empty\n\nOutput:\nError: other"), ["empty"]);
        assert_eq!(lines("Output:\nstarted\nError: empty"), ["Error: empty"]);
        assert_eq!(lines("-----\n\n"), ["-----"]);
        assert!(lines(" \n\n").is_empty());
    }
}
